//! `feature_enable_disable`: enables or disables a feature on an interface's arc.

use crate::api_types::{FEATURE, view};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Enables or disables a feature. Calls are counted: it stays enabled until disabled as often. What
/// a feature's own commands have enabled is not affected. No document has what this enables.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct FeatureEnableDisable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to enable, false to disable.
    pub enable: bool,
    /// The arc.
    pub arc_name: Text<64>,
    /// The feature.
    pub feature_name: Text<64>,
}

/// The service.
pub static SERVICE: Call<Control, FeatureEnableDisable, FeatureEnableDisableReply> =
    Call::new(&FEATURE, handle);

fn handle(c: &mut Control, rq: FeatureEnableDisable) -> Result<FeatureEnableDisableReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    known(c, &rq.arc_name, &rq.feature_name)?;
    c.enable_feature(rq.arc_name.as_str(), rq.feature_name.as_str(), sw_if, rq.enable)
        .map_err(|error| Retval::INVALID_VALUE.because(error))?;
    Ok(FeatureEnableDisableReply)
}

/// Checks that the arc and the feature exist.
///
/// # Errors
/// [`Retval::INVALID_VALUE`] for an unknown arc, [`Retval::INVALID_VALUE_2`] for an unknown
/// feature.
pub(super) fn known(c: &Control, arc: &Text<64>, feature: &Text<64>) -> Result<(), Retval> {
    let arc = c.arc(arc.as_str()).ok_or(Retval::INVALID_VALUE)?;
    match c.arc_features(arc).contains(&feature.as_str()) {
        true => Ok(()),
        false => Err(Retval::INVALID_VALUE_2),
    }
}
