//! `feature_is_enabled`: returns whether a feature is enabled on an interface's arc.

use super::feature_enable_disable::known;
use crate::api_types::{FEATURE, view};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Requests the state of a feature.
#[derive(Debug, Message)]
#[api(request)]
pub struct FeatureIsEnabled {
    /// The arc.
    pub arc_name: Text<64>,
    /// The feature.
    pub feature_name: Text<64>,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Reply to [`FeatureIsEnabled`]. In VPP's definition it begins like a request.
#[derive(Debug, Default, Message)]
#[api(request)]
pub struct FeatureIsEnabledReply {
    /// Return code.
    pub retval: i32,
    /// Whether the feature is enabled.
    pub is_enabled: bool,
}

/// The service.
pub static SERVICE: Call<Control, FeatureIsEnabled, FeatureIsEnabledReply> =
    Call::new(&FEATURE, handle);

fn handle(c: &mut Control, rq: FeatureIsEnabled) -> Result<FeatureIsEnabledReply, Retval> {
    let (retval, is_enabled) = match find(c, &rq) {
        Ok(is_enabled) => (0, is_enabled),
        Err(retval) => (retval.0, false),
    };
    Ok(FeatureIsEnabledReply { retval, is_enabled })
}

fn find(c: &Control, rq: &FeatureIsEnabled) -> Result<bool, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    known(c, &rq.arc_name, &rq.feature_name)?;
    let arcs = c.enabled_features(sw_if);
    let on = arcs.iter().find(|(arc, _)| *arc == rq.arc_name.as_str());
    Ok(on.is_some_and(|(_, features)| features.contains(&rq.feature_name.as_str())))
}
