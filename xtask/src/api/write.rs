//! Types of Rust for messages.

use super::description::{Field, Message, Module, Type};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// Members that VPP added to an enumeration later, without changing the CRCs that it is part of.
/// VPP's descriptions do not say so.
const LATER: [&str; 4] = [
    "AF_PACKET_API_FLAG_VERSION_2",
    "TAP_API_FLAG_PACKED",
    "TAP_API_FLAG_IN_ORDER",
    "TAP_API_FLAG_CONSISTENT_QP",
];

const HEAD: &str = "\
//! Messages that WHO HANDLES, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = \"VPP's `.api` files say what fields mean\")]

";

/// Writes the types for a folder of handlers.
pub struct Writer<'a> {
    /// Texts of modules with shared types.
    shared: &'a [(String, &'static str)],
    handlers: &'a str,
    uses: BTreeMap<&'static str, BTreeSet<String>>,
    done: BTreeSet<String>,
    text: String,
}

impl<'a> Writer<'a> {
    pub fn new(shared: &'a [(String, &'static str)], handlers: &'a str) -> Writer<'a> {
        let (uses, done) = (BTreeMap::new(), BTreeSet::new());
        Writer { shared, handlers, uses, done, text: String::new() }
    }

    /// Returns all that was written; `who` and `handles` complete "Messages that …".
    pub fn finish(self, who: &str, handles: &str) -> String {
        let mut text = HEAD.replace("WHO", who).replace("HANDLES", handles);
        for (module, names) in self.uses {
            let names: Vec<_> = names.into_iter().collect();
            text += &match &names[..] {
                [name] => format!("use {module}::{name};\n"),
                _ => format!("use {module}::{{{}}};\n", names.join(", ")),
            };
        }
        text + "\n" + self.text.trim_start()
    }

    fn uses(&mut self, module: &'static str, name: &str) {
        self.uses.entry(module).or_default().insert(name.to_owned());
    }

    /// Writes a request with all messages that belong to it.
    pub fn service(&mut self, module: &Module, request: &str) -> Result<()> {
        let name = &module.name;
        if self.done.insert(format!("module {name}")) {
            self.uses("thalweg_api::schema", "Module");
            let (folder, version) = (&module.folder, module.version());
            self.text += &format!(
                "\n/// Module `{name}`.\npub static {}: Module = Module {{ name: {name:?}, \
                 folder: {folder:?}, version: {version:?} }};\n",
                name.to_uppercase()
            );
        }
        let (service, message) = (module.service(request), module.message(request)?);
        let reply =
            service.reply.map(|reply| Ok::<_, anyhow::Error>((module.message(&reply)?, reply)));
        let reply = reply.transpose()?;
        let is_auto = reply.as_ref().is_some_and(|(reply, name)| {
            *name == format!("{request}_reply")
                && head(reply) == ("reply", reply.fields.len())
                && reply.options == message.options
        });
        self.message(module, request, &message, is_auto)?;
        for other in service.others {
            self.message(module, &other, &module.message(&other)?, false)?;
        }
        if let Some((reply, name)) = reply.filter(|_| !is_auto) {
            self.message(module, &name, &reply, false)?;
        }
        Ok(())
    }

    /// Writes the ids of a module whose messages have fixed ones: their places in its description,
    /// from 1.
    pub fn numbers(&mut self, module: &Module, requests: &[&str]) {
        self.uses("thalweg_api::schema", "MessageDef");
        let is_ours = |name: &str| requests.contains(&name.trim_end_matches("_reply"));
        let (mut rows, mut ours) = (String::new(), 0);
        let names = module.messages();
        for (at, name) in names.iter().enumerate().filter(|(_, name)| is_ours(name)) {
            rows += &format!("    ({}, {}::DEF),\n", at + 1, camel(name));
            ours += 1;
        }
        self.text += &format!(
            "\n/// Ids of these messages.\n\
             pub(crate) const NUMBERS: [(u16, &MessageDef); {ours}] = [\n{rows}];\n\
             \n/// Last id of the module, which has messages that are not offered.\n\
             pub(crate) const LAST: u16 = {};\n",
            names.len()
        );
    }

    fn message(
        &mut self,
        module: &Module,
        name: &str,
        message: &Message,
        has_autoreply: bool,
    ) -> Result<()> {
        if !self.done.insert(format!("message {name}")) {
            return Ok(());
        }
        self.uses("thalweg_api", "Message");
        let (kind, skipped) = match head(message) {
            // The reply that gives a client its id has these fields for itself.
            ("request", _) if name == "sockclnt_create_reply" => ("bare", 0),
            head => head,
        };
        let mut words = vec![kind.to_owned()];
        words.extend(has_autoreply.then(|| "autoreply".into()));
        for (option, value) in &message.options {
            let value = value.as_str().map(|value| format!(" = {value:?}")).unwrap_or_default();
            words.push(format!("{option}{value}"));
        }
        let fields = self.fields(module, &message.fields[skipped..])?;
        let rust = camel(name);
        // A handler may have its own.
        let own = self.handlers.contains(&format!("impl Default for {rust} "));
        self.text += &format!(
            "\n/// Message `{name}`.\n#[derive(Clone, Debug{}, PartialEq, Message)]\n#[api({})]\n\
             pub struct {rust}{fields}\n",
            if own { "" } else { ", Default" },
            words.join(", "),
        );
        Ok(())
    }

    /// Returns the body of a struct, after its types are written.
    fn fields(&mut self, module: &Module, fields: &[Field]) -> Result<String> {
        let counts = |name: &str| fields.iter().any(|field| field.count.as_deref() == Some(name));
        let mut body = String::new();
        for field in fields.iter().filter(|field| !counts(&field.name)) {
            let (name, mut attributes) = (ident(&field.name), Vec::new());
            if name.trim_start_matches("r#") != field.name {
                attributes.push(format!("name = {:?}", field.name));
            }
            let mut ty = self.rust(module, &field.ty, field.length)?;
            if let Some(count) = &field.count {
                let at = fields.iter().position(|field| field.name == *count);
                let at = at.with_context(|| format!("no field `{count}`"))?;
                attributes.push(format!("count = \"{count}: {}\"", fields[at].ty));
                let next = fields[at..].iter().find(|field| !counts(&field.name));
                let next = next.filter(|next| next.name != field.name);
                attributes.extend(next.map(|next| format!("at = {:?}", ident(&next.name))));
                ty = format!("Vec<{}>", self.rust(module, &field.ty, None)?);
            }
            attributes
                .extend(field.options.iter().map(|(name, value)| format!("{name} = {value}")));
            if !attributes.is_empty() {
                body += &format!("#[api({})]\n", attributes.join(", "));
            }
            body += &format!("pub {name}: {ty},\n");
        }
        Ok(if body.is_empty() { ";".into() } else { format!(" {{\n{body}}}") })
    }

    /// Returns the type of Rust of a field, which is written if it is not shared.
    fn rust(&mut self, module: &Module, ty: &str, length: Option<u64>) -> Result<String> {
        let one = match (ty, length) {
            ("string", Some(0)) => return Ok("String".into()),
            ("string", Some(n)) => {
                self.uses("thalweg_api", "Text");
                return Ok(format!("Text<{n}>"));
            }
            _ => match defined(ty) {
                Some(name) => self.named(module, name)?,
                None => ty.to_owned(),
            },
        };
        Ok(match length {
            Some(n) => format!("[{one}; {n}]"),
            None => one,
        })
    }

    fn named(&mut self, module: &Module, name: &str) -> Result<String> {
        if name == "mac_address" {
            self.uses("thalweg_api::types", "MacAddr");
            return Ok("MacAddr".into());
        }
        let rust = camel(name);
        let declares = |text: &str| {
            [":", "(", " {"].iter().any(|next| text.contains(&format!("pub struct {rust}{next}")))
        };
        if let Some((_, shared)) = self.shared.iter().find(|(text, _)| declares(text)) {
            self.uses(shared, &rust);
        } else if self.done.insert(format!("type {name}")) {
            self.define(module, name, &rust)?;
        }
        Ok(rust)
    }

    fn define(&mut self, module: &Module, name: &str, rust: &str) -> Result<()> {
        let about = format!("/// Type `{name}`.");
        match module.ty(name)? {
            Type::Struct(fields) => {
                let derived = derived(module, name)?;
                let body = self.fields(module, &fields)?;
                self.uses("thalweg_api", "ApiType");
                self.text += &format!(
                    "\n{about}\n#[derive({derived}, ApiType)]\n\
                     pub struct {rust}{body}\n"
                );
            }
            Type::Union(fields) => {
                self.uses("thalweg_api", "api_union");
                let (mut arms, mut size) = (String::new(), 0);
                for field in &fields {
                    let ty = self.rust(module, &field.ty, field.length)?;
                    let case = field.options.get("case");
                    let case = case.map(|case| format!(", case {case}")).unwrap_or_default();
                    arms += &format!("        {}: {ty}{case};\n", ident(&field.name));
                    size = size.max(field_size(module, field)?);
                }
                self.text += &format!(
                    "\napi_union! {{\n    {about}\n    \
                     pub struct {rust}({size}) = {name:?} {{\n{arms}    }}\n}}\n"
                );
            }
            Type::Enum { base, is_flags, members } => {
                self.uses("thalweg_api", "api_enum");
                let sign = if is_flags { "flags" } else { "=" };
                let prefix = common_prefix(&members);
                let mut list = String::new();
                for (text, value) in &members {
                    let later = if LATER.contains(&text.as_str()) { "later " } else { "" };
                    let short = &text[prefix..];
                    list += &format!("        {short} = {value}, {later}{text:?};\n");
                }
                self.text += &format!(
                    "\napi_enum! {{\n    {about}\n    \
                     pub struct {rust}: {base} {sign} {name:?} {{\n{list}    }}\n}}\n"
                );
            }
            Type::Alias { of, length } => {
                let ty = self.rust(module, &of, length)?;
                let eq = if derived(module, name)?.ends_with("Eq") { ", Eq" } else { "" };
                self.uses("thalweg_api", "api_alias");
                self.text += &format!(
                    "\napi_alias! {{\n    {about}\n    #[derive(Default{eq})]\n    \
                     pub struct {rust}({ty}) = {name:?};\n}}\n"
                );
            }
        }
        Ok(())
    }
}

/// Returns the kind of a message by its leading fields, and their number.
fn head(message: &Message) -> (&'static str, usize) {
    let fields: Vec<_> = message.fields.iter().map(|f| (f.name.as_str(), f.ty.as_str())).collect();
    match fields[..] {
        [("client_index", "u32"), ("context", "u32"), ..] => ("request", 2),
        [("context", "u32"), ("retval", "i32"), ..] => ("reply", 2),
        [("context", "u32"), ..] => ("details", 1),
        [("client_index", "u32"), ..] => ("event", 1),
        _ => ("bare", 0),
    }
}

/// Returns the name of a defined type; `None` for a primitive one.
fn defined(ty: &str) -> Option<&str> {
    ty.strip_prefix("vl_api_")?.strip_suffix("_t")
}

fn camel(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    };
    name.split('_').map(word).collect()
}

fn ident(name: &str) -> String {
    let name = name.to_lowercase();
    if ["type", "match", "ref", "in", "use", "move"].contains(&name.as_str()) {
        return format!("r#{name}");
    }
    name
}

/// Returns the length of what the names of all members begin with, up to an underscore.
fn common_prefix(members: &[(String, i64)]) -> usize {
    let Some(((first, _), rest)) = members.split_first() else { return 0 };
    let same = |(other, _): &(String, i64)| {
        first.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
    };
    let length = rest.iter().map(same).min().unwrap_or(first.len());
    first[..length].rfind('_').map_or(0, |at| at + 1)
}

/// Returns the traits that a type derives: `Copy` and `Eq` if it can.
fn derived(module: &Module, name: &str) -> Result<&'static str> {
    let (mut has_text, mut has_float) = (false, false);
    visit(module, &format!("vl_api_{name}_t"), &mut |field| {
        has_text |= field.ty == "string" || field.count.is_some();
        has_float |= field.ty == "f64";
    })?;
    Ok(match (has_text, has_float) {
        (true, true) => "Clone, Debug, Default, PartialEq",
        (true, false) => "Clone, Debug, Default, PartialEq, Eq",
        (false, true) => "Clone, Copy, Debug, Default, PartialEq",
        (false, false) => "Clone, Copy, Debug, Default, PartialEq, Eq",
    })
}

/// Visits all fields below a type.
fn visit(module: &Module, ty: &str, see: &mut impl FnMut(&Field)) -> Result<()> {
    let Some(name) = defined(ty) else { return Ok(()) };
    let fields = match module.ty(name)? {
        Type::Struct(fields) | Type::Union(fields) => fields,
        Type::Enum { .. } => Vec::new(),
        Type::Alias { of, length } => vec![Field::of(of, length)],
    };
    for field in &fields {
        see(field);
        visit(module, &field.ty, see)?;
    }
    Ok(())
}

fn field_size(module: &Module, field: &Field) -> Result<u64> {
    let one = match field.ty.as_str() {
        "u8" | "i8" | "bool" | "string" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" => 4,
        "u64" | "i64" | "f64" => 8,
        other => match defined(other).map(|name| module.ty(name)).transpose()? {
            None => bail!("unknown type `{other}`"),
            Some(Type::Struct(fields)) => {
                fields.iter().map(|field| field_size(module, field)).sum::<Result<u64>>()?
            }
            Some(Type::Union(fields)) => {
                let sizes = fields.iter().map(|field| field_size(module, field));
                sizes.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or_default()
            }
            Some(Type::Enum { base, .. }) => field_size(module, &Field::of(base, None))?,
            Some(Type::Alias { of, length }) => field_size(module, &Field::of(of, length))?,
        },
    };
    Ok(one * field.length.unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_rust() {
        assert_eq!(camel("sw_interface_set_l2_xconnect"), "SwInterfaceSetL2Xconnect");
        assert_eq!(ident("sampling_N"), "sampling_n");
        assert_eq!(ident("type"), "r#type");
        let members = ["A_API_X_ONE", "A_API_X_OTHER"].map(|name| (name.to_owned(), 0));
        assert_eq!(common_prefix(&members), "A_API_X_".len());
        assert_eq!(common_prefix(&members[..1]), "A_API_X_".len());
        assert_eq!(defined("vl_api_prefix_t"), Some("prefix"));
        assert_eq!(defined("u32"), None);
    }
}
