//! `feature_is_enabled`: returns whether a feature is enabled on an interface's arc.

use super::feature_enable_disable::known;
use crate::api_types::view;
use crate::message_types::{FEATURE, FeatureIsEnabled, FeatureIsEnabledReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
