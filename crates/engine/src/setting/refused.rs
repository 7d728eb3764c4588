//! Refusals of setters.

use std::fmt::Display;
use thalweg_api::Retval;
use thalweg_cli::CliError;

/// A refused request: its text, and the number by which the binary API knows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refused {
    /// Return value in the binary API (VPP's `api_errno.h`), negative.
    pub code: i32,
    /// Names the object, the limit and the remedy.
    pub text: String,
}

impl Refused {
    /// Creates one from an error's text and its number.
    pub fn new(code: i32, text: impl Display) -> Refused {
        Refused { code, text: text.to_string() }
    }
}

impl From<CliError> for Refused {
    fn from(error: CliError) -> Refused {
        Refused::new(error.code(), error)
    }
}

impl From<Refused> for CliError {
    fn from(refused: Refused) -> CliError {
        CliError::with_code(refused.text, refused.code)
    }
}

impl From<Refused> for Retval {
    fn from(refused: Refused) -> Retval {
        Retval(refused.code).because(refused.text)
    }
}
