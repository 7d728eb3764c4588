//! `show_version`: what runs here.

use crate::api_modules::VPE;
use crate::cli::show_version::{DATE, version};
use crate::control::Control;
use thalweg_api::{Call, Message, Retval, Text};

/// Asks for the program's version.
#[derive(Debug, Message)]
#[api(request)]
pub struct ShowVersion;

/// Answers [`ShowVersion`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ShowVersionReply {
    /// The program.
    pub program: Text<32>,
    /// Its version.
    pub version: Text<32>,
    /// When it was built.
    pub build_date: Text<32>,
    /// Where it was built, which is nobody's business.
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
