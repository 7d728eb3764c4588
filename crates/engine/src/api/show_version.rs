//! `show_version`: the program and its version.

use crate::cli::show_version::{DATE, version};
use crate::message_types::{ShowVersion, ShowVersionReply, VPE};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, ShowVersion, ShowVersionReply> = Call::new(&VPE, handle);

fn handle(_: &mut Control, _: ShowVersion) -> Result<ShowVersionReply, Retval> {
    Ok(ShowVersionReply {
        program: "thalweg".into(),
        version: version().as_str().into(),
        build_date: DATE.unwrap_or("not recorded").into(),
        build_directory: "".into(),
    })
}
