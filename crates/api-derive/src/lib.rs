//! Derive macros of the binary API. `thalweg-api` re-exports and documents them.
#![forbid(unsafe_code)]

mod attributes;
mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

/// Makes a struct a message. See `thalweg_api::Message`.
#[proc_macro_derive(Message, attributes(api))]
pub fn message(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::message(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Makes a struct a type that messages hold. See `thalweg_api::Wire`.
#[proc_macro_derive(ApiType, attributes(api))]
pub fn api_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::api_type(&input).unwrap_or_else(Error::into_compile_error).into()
}
