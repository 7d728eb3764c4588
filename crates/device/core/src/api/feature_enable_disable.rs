//! `feature_enable_disable`: enables or disables a feature on an interface's arc.

use crate::api_types::view;
use crate::message_types::{FEATURE, FeatureEnableDisable, FeatureEnableDisableReply};
use thalweg_api::{Call, Retval, Text};
use thalweg_graph::Control;

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
