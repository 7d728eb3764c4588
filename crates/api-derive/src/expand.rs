//! Generates the code of a struct.

use crate::attributes::{self, FieldAttributes, Kind};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, Lit, Result, Type};

struct Field<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    attributes: FieldAttributes,
}

impl Field<'_> {
    fn name(&self) -> String {
        let own = || self.ident.to_string().trim_start_matches("r#").to_owned();
        self.attributes.name.clone().unwrap_or_else(own)
    }

    /// Returns the element type of `Vec<T>`.
    fn element(&self) -> Result<&Type> {
        if let Type::Path(path) = self.ty
            && let Some(last) = path.path.segments.last()
            && last.ident == "Vec"
            && let syn::PathArguments::AngleBracketed(arguments) = &last.arguments
            && let Some(syn::GenericArgument::Type(element)) = arguments.args.first()
        {
            return Ok(element);
        }
        Err(Error::new_spanned(self.ty, "a field with `count` is a `Vec`"))
    }
}

fn fields(input: &DeriveInput) -> Result<Vec<Field<'_>>> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "only a struct can be a message or type"));
    };
    let named = match &data.fields {
        Fields::Named(named) => &named.named,
        Fields::Unit => return Ok(Vec::new()),
        Fields::Unnamed(fields) => {
            return Err(Error::new_spanned(fields, "fields must have names"));
        }
    };
    let fields = named.iter().map(|field| {
        let attributes = attributes::field(&field.attrs)?;
        let ident = field.ident.as_ref();
        let ident = ident.ok_or_else(|| Error::new_spanned(field, "a field must have a name"))?;
        Ok(Field { ident, ty: &field.ty, attributes })
    });
    fields.collect()
}

/// Converts `SwInterfaceSetMtu` to `sw_interface_set_mtu`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn option(name: &str, value: &Lit) -> Result<TokenStream> {
    let value = match value {
        Lit::Int(n) => {
            let n: i64 = n.base10_parse()?;
            quote!(::thalweg_api::schema::Value::Int(#n))
        }
        Lit::Float(x) => quote!(::thalweg_api::schema::Value::Float(#x)),
        Lit::Bool(yes) => quote!(::thalweg_api::schema::Value::Bool(#yes)),
        Lit::Str(text) => quote!(::thalweg_api::schema::Value::Text(#text)),
        other => return Err(Error::new_spanned(other, "a number, a boolean or a string")),
    };
    Ok(quote!((#name, #value)))
}

/// Descriptions, encoding and decoding of a struct's fields.
struct Body {
    described: Vec<TokenStream>,
    encode: Vec<TokenStream>,
    decode: Vec<TokenStream>,
    idents: Vec<Ident>,
}

impl Body {
    fn of(fields: &[Field<'_>]) -> Result<Body> {
        let mut body = Body { described: vec![], encode: vec![], decode: vec![], idents: vec![] };
        for (i, field) in fields.iter().enumerate() {
            if let Some(at) = &field.attributes.at
                && !fields[..i].iter().any(|earlier| earlier.ident == at)
            {
                return Err(Error::new_spanned(at, "`at` names no earlier field"));
            }
            for counted in fields {
                let before = counted.attributes.at.as_ref().unwrap_or(counted.ident);
                if let Some(count) = &counted.attributes.count
                    && before == field.ident
                {
                    body.count(counted, count);
                }
            }
            body.field(field)?;
        }
        Ok(body)
    }

    fn count(&mut self, counted: &Field<'_>, (name, ty): &(Ident, Type)) {
        let (ident, text) = (counted.ident, name.to_string());
        self.described.push(quote!(::thalweg_api::schema::Field::of::<#ty>(#text, &[])));
        self.encode.push(quote! {
            let #name = ::thalweg_api::wire::count::<#ty>(self.#ident.len(), out);
        });
        self.decode.push(quote! {
            let #name = <#ty as ::thalweg_api::Wire>::decode(input)? as usize;
        });
    }

    fn field(&mut self, field: &Field<'_>) -> Result<()> {
        let (ident, ty, name) = (field.ident, field.ty, field.name());
        let options = &field.attributes.options;
        let options =
            options.iter().map(|(name, value)| option(name, value)).collect::<Result<Vec<_>>>()?;
        self.idents.push(ident.clone());
        if let Some((count, _)) = &field.attributes.count {
            let element = field.element()?;
            let text = count.to_string();
            self.described.push(quote! {
                ::thalweg_api::schema::Field::counted::<#element>(#name, #text, &[#(#options),*])
            });
            self.encode.push(quote! {
                for element in self.#ident.iter().take(#count) {
                    ::thalweg_api::Wire::encode(element, out);
                }
            });
            self.decode.push(quote! {
                let #ident = ::thalweg_api::wire::elements::<#element>(#count, input)?;
            });
            return Ok(());
        }
        self.described.push(quote! {
            ::thalweg_api::schema::Field::of::<#ty>(#name, &[#(#options),*])
        });
        self.encode.push(quote!(::thalweg_api::Wire::encode(&self.#ident, out);));
        self.decode.push(quote!(let #ident = <#ty as ::thalweg_api::Wire>::decode(input)?;));
        Ok(())
    }
}

/// Generates the code of `#[derive(ApiType)]`.
pub fn api_type(input: &DeriveInput) -> Result<TokenStream> {
    let ident = &input.ident;
    let name = snake(&ident.to_string());
    let Body { described, encode, decode, idents } = Body::of(&fields(input)?)?;
    Ok(quote! {
        impl ::thalweg_api::Wire for #ident {
            const TYPE: ::thalweg_api::schema::TypeRef = ::thalweg_api::schema::TypeRef::Def(
                &::thalweg_api::schema::TypeDef {
                    name: #name,
                    kind: ::thalweg_api::schema::TypeKind::Struct(&[#(#described),*]),
                },
            );
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                #(#encode)*
                let _ = out;
            }
            fn decode(
                input: &mut ::thalweg_api::wire::Reader<'_>,
            ) -> ::std::result::Result<Self, ::thalweg_api::wire::Truncated> {
                #(#decode)*
                let _ = input;
                ::std::result::Result::Ok(Self { #(#idents),* })
            }
        }
    })
}

/// Generates the code of `#[derive(Message)]`.
pub fn message(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = attributes::container(&input.attrs)?;
    let ident = &input.ident;
    let Some(kind) = attributes.kind else {
        let what = "say what kind of message this is: #[api(request)], reply, details, event, bare";
        return Err(Error::new_spanned(ident, what));
    };
    let kind = match kind {
        Kind::Request => quote!(Request),
        Kind::Reply => quote!(Reply),
        Kind::Details => quote!(Details),
        Kind::Event => quote!(Event),
        Kind::Bare => quote!(Bare),
    };
    let name = snake(&ident.to_string());
    let options: Vec<_> = attributes
        .options
        .iter()
        .map(|(name, value)| match value {
            Some(value) => quote!((#name, ::std::option::Option::Some(#value))),
            None => quote!((#name, ::std::option::Option::None)),
        })
        .collect();
    let Body { described, encode, decode, idents } = Body::of(&fields(input)?)?;
    let reply = if attributes.autoreply {
        autoreply(input, &attributes.options)
    } else {
        TokenStream::new()
    };
    Ok(quote! {
        impl ::thalweg_api::Message for #ident {
            const DEF: &'static ::thalweg_api::schema::MessageDef =
                &::thalweg_api::schema::MessageDef {
                    name: #name,
                    kind: ::thalweg_api::schema::Kind::#kind,
                    body: &[#(#described),*],
                    options: &[#(#options),*],
                };
            fn encode_body(&self, out: &mut ::std::vec::Vec<u8>) {
                #(#encode)*
                let _ = out;
            }
            fn decode_body(
                input: &mut ::thalweg_api::wire::Reader<'_>,
            ) -> ::std::result::Result<Self, ::thalweg_api::wire::Truncated> {
                #(#decode)*
                let _ = input;
                ::std::result::Result::Ok(Self { #(#idents),* })
            }
        }
        #reply
    })
}

/// Generates the reply that has a return value only.
fn autoreply(input: &DeriveInput, options: &[(String, Option<String>)]) -> TokenStream {
    let (request, visibility) = (&input.ident, &input.vis);
    let reply = format_ident!("{request}Reply");
    let about = format!("Replies to [`{request}`].");
    let options = options.iter().map(|(name, value)| {
        let name = format_ident!("{name}");
        match value {
            Some(value) => quote!(#[api(#name = #value)]),
            None => quote!(#[api(#name)]),
        }
    });
    quote! {
        #[doc = #about]
        #[derive(Clone, Debug, Default, PartialEq, ::thalweg_api::Message)]
        #[api(reply)]
        #(#options)*
        #visibility struct #reply;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn names_are_as_vpp_spells_them() {
        assert_eq!(snake("SwInterfaceSetL2Xconnect"), "sw_interface_set_l2_xconnect");
        assert_eq!(snake("AfPacketCreateV3"), "af_packet_create_v3");
        assert_eq!(snake("GetF64EndianValue"), "get_f64_endian_value");
    }

    #[test]
    fn errors_point_at_their_place() {
        let error = |input: DeriveInput| message(&input).unwrap_err().to_string();
        assert!(
            error(parse_quote!(
                struct A;
            ))
            .contains("what kind of message")
        );
        assert!(
            error(parse_quote!(
                #[api(request)]
                struct A(u8);
            ))
            .contains("must have names")
        );
        assert!(
            error(parse_quote!(
                #[api(what)]
                struct A;
            ))
            .contains("unknown word")
        );
        assert!(
            error(parse_quote!(
                #[api(reply, autoreply)]
                struct A;
            ))
            .contains("only a request")
        );
        let counted = parse_quote!(
            #[api(request)]
            struct A {
                #[api(count = "n: u8")]
                a: u8,
            }
        );
        assert!(error(counted).contains("is a `Vec`"));
        assert!(
            error(parse_quote!(
                #[api(request)]
                enum A {}
            ))
            .contains("only a struct")
        );
    }
}
