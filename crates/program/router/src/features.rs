//! The router's features.

use thalweg_engine::Feature;

/// All features and device drivers, in the order in which they are initialised: a feature comes
/// after those that it needs.
pub static FEATURES: &[&Feature] = &[
    &thalweg_device::FEATURE,
    &thalweg_fib::FEATURE,
    &thalweg_device_af_packet::FEATURE,
    &thalweg_device_pg::FEATURE,
    &thalweg_device_tap::FEATURE,
    &thalweg_feat_ethernet::FEATURE,
    &thalweg_feat_l2::FEATURE,
    &thalweg_feat_flow::FEATURE,
    &thalweg_feat_neighbor::FEATURE,
    &thalweg_feat_arp::FEATURE,
    &thalweg_feat_nd::FEATURE,
    &thalweg_feat_ip::FEATURE,
    &thalweg_feat_ip4::FEATURE,
    &thalweg_feat_mss_clamp::FEATURE,
    &thalweg_feat_ip6::FEATURE,
    &thalweg_feat_ra::FEATURE,
    &thalweg_feat_mld::FEATURE,
    &thalweg_feat_mpls::FEATURE,
    &thalweg_feat_lcp::FEATURE,
    &thalweg_feat_nat44::FEATURE,
    &thalweg_feat_sflow::FEATURE,
    &thalweg_feat_pcap::FEATURE,
    &crate::api::FEATURE,
    &crate::metrics::FEATURE,
    &crate::vpp::FEATURE,
    &crate::vpp::NOTHING,
    &thalweg_feat_config::FEATURE,
];

#[cfg(test)]
mod tests {
    use super::FEATURES;

    #[test]
    fn features_fit_together() {
        let control = thalweg_graph::EngineConfig {
            pool: thalweg_buffer::PoolConfig { buffers: 512, ..Default::default() },
            ..Default::default()
        };
        let mut control = thalweg_graph::Control::new(control).unwrap();
        thalweg_engine::start(&mut control, FEATURES).unwrap();
        let commands = thalweg_engine::commands(&control);
        thalweg_cli::CommandTree::new(commands).unwrap();
        assert_eq!(control.shut_down().in_use, 0);
    }
}
