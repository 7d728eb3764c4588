//! `show_version`: the program and its version.

use crate::api_modules::VPE;
use crate::cli::show_version::{DATE, version};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::control::Control;

/// Requests the program's version.
#[derive(Debug, Message)]
#[api(request)]
pub struct ShowVersion;

/// Replies to [`ShowVersion`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ShowVersionReply {
    /// Name of the program.
    pub program: Text<32>,
    /// Its version.
    pub version: Text<32>,
    /// Date of the build.
    pub build_date: Text<32>,
    /// Directory of the build; always empty, since it reveals the build machine.
    pub build_directory: Text<256>,
}

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
