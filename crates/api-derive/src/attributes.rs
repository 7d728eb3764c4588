//! The attributes `#[api(…)]`.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Ident, Lit, LitStr, Result, Type};

/// Leading fields of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Reply,
    Details,
    Event,
    Bare,
}

/// Attributes of a struct.
#[derive(Default)]
pub struct Container {
    pub kind: Option<Kind>,
    pub autoreply: bool,
    /// Options of the message, in order: name and string.
    pub options: Vec<(String, Option<String>)>,
}

/// Attributes of a field.
#[derive(Default)]
pub struct FieldAttributes {
    pub name: Option<String>,
    /// Name and type of the field that holds the number of elements.
    pub count: Option<(Ident, Type)>,
    /// The field that the count stands before, if not this one.
    pub at: Option<Ident>,
    /// Options of the field, in order.
    pub options: Vec<(&'static str, Lit)>,
}

fn text(meta: &ParseNestedMeta) -> Result<String> {
    Ok(meta.value()?.parse::<LitStr>()?.value())
}

/// Reads the attributes of a struct.
pub fn container(attributes: &[Attribute]) -> Result<Container> {
    let mut found = Container::default();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("api")) {
        attribute.parse_nested_meta(|meta| {
            let Some(word) = meta.path.get_ident().map(Ident::to_string) else {
                return Err(meta.error("a single word is expected here"));
            };
            match word.as_str() {
                "request" => found.kind = Some(Kind::Request),
                "reply" => found.kind = Some(Kind::Reply),
                "details" => found.kind = Some(Kind::Details),
                "event" => found.kind = Some(Kind::Event),
                "bare" => found.kind = Some(Kind::Bare),
                "autoreply" => found.autoreply = true,
                "deprecated" | "in_progress" => found.options.push((word, None)),
                "status" | "replaced_by" | "vat_help" => {
                    let value = text(&meta)?;
                    found.options.push((word, Some(value)));
                }
                _ => return Err(meta.error("unknown word in `#[api(…)]` of a struct")),
            }
            Ok(())
        })?;
    }
    if found.autoreply && found.kind != Some(Kind::Request) {
        let what = "only a request can have `autoreply`";
        return Err(Error::new_spanned(&attributes[0], what));
    }
    Ok(found)
}

/// Reads the attributes of a field.
pub fn field(attributes: &[Attribute]) -> Result<FieldAttributes> {
    let mut found = FieldAttributes::default();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("api")) {
        attribute.parse_nested_meta(|meta| {
            match meta.path.get_ident().map(Ident::to_string).as_deref() {
                Some("name") => found.name = Some(text(&meta)?),
                Some("count") => {
                    let value = meta.value()?.parse::<LitStr>()?;
                    found.count = Some(value.parse_with(|input: syn::parse::ParseStream| {
                        let name = input.parse::<Ident>()?;
                        input.parse::<syn::Token![:]>()?;
                        Ok((name, input.parse::<Type>()?))
                    })?);
                }
                Some("at") => found.at = Some(meta.value()?.parse::<LitStr>()?.parse()?),
                Some("default") => found.options.push(("default", meta.value()?.parse()?)),
                Some("discriminator") => {
                    found.options.push(("discriminator", meta.value()?.parse()?));
                }
                _ => return Err(meta.error("unknown word in `#[api(…)]` of a field")),
            }
            Ok(())
        })?;
    }
    Ok(found)
}
