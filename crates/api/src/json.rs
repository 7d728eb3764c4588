//! The JSON descriptions that clients read: a self-contained file per module.

use crate::schema::{
    Arity, Field, MessageDef, Module, TypeDef, TypeKind, TypeRef, Value as OptionValue,
};
use serde_json::{Map, Value, json};

/// A service as described in a module.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// The request.
    pub request: &'static MessageDef,
    /// The reply, if any.
    pub reply: Option<&'static MessageDef>,
    /// The details messages before it, if any.
    pub details: Option<&'static MessageDef>,
    /// Events that may follow this request.
    pub events: &'static [&'static MessageDef],
}

impl Described {
    /// Returns all its messages.
    pub fn messages(&self) -> impl Iterator<Item = &'static MessageDef> {
        let some = [Some(self.request), self.reply, self.details];
        some.into_iter().flatten().chain(self.events.iter().copied())
    }

    fn service(&self) -> Value {
        let mut service = Map::new();
        let name = |def: &MessageDef| Value::from(def.name);
        match (self.reply, self.details) {
            (None, Some(details)) => {
                service.insert("reply".into(), name(details));
                service.insert("stream".into(), true.into());
            }
            (reply, details) => {
                service.insert("reply".into(), reply.map_or("null".into(), name));
                if let Some(details) = details {
                    service.insert("stream".into(), true.into());
                    service.insert("stream_msg".into(), name(details));
                }
            }
        }
        if !self.events.is_empty() {
            let events: Vec<Value> = self.events.iter().map(|def| name(def)).collect();
            service.insert("events".into(), events.into());
        }
        service.into()
    }
}

fn option_value(value: &OptionValue) -> Value {
    match *value {
        OptionValue::Int(n) => n.into(),
        OptionValue::Float(x) => x.into(),
        OptionValue::Bool(yes) => yes.into(),
        OptionValue::Text(text) => text.into(),
    }
}

fn field(field: &Field) -> Value {
    let mut parts = vec![json!(field.ty.spelling()), json!(field.name)];
    match field.arity {
        Arity::One => {}
        Arity::Fixed(n) => parts.push(n.into()),
        Arity::Counted(by) => parts.extend([0.into(), by.into()]),
        Arity::Open => parts.push(0.into()),
    }
    if !field.options.is_empty() {
        let options = field.options.iter().map(|(name, v)| ((*name).into(), option_value(v)));
        parts.push(Value::Object(options.collect()));
    }
    parts.into()
}

/// Returns the description of a message.
pub fn message(def: &MessageDef) -> Value {
    let mut parts = vec![json!(def.name), json!(["u16", "_vl_msg_id"])];
    parts.extend(def.fields().map(field));
    let options = def.options.iter().map(|(name, value)| ((*name).into(), json!(value)));
    let options = Value::Object(options.collect());
    parts.push(json!({ "crc": format!("0x{:08x}", def.crc()), "options": options }));
    parts.into()
}

fn named(name: &str, fields: &[Field]) -> Value {
    let mut parts = vec![json!(name)];
    parts.extend(fields.iter().map(field));
    parts.into()
}

/// Collects the types of fields, each once, in order of dependency.
fn collect(fields: impl IntoIterator<Item = &'static Field>, found: &mut Vec<&'static TypeDef>) {
    for field in fields {
        add(field.ty, found);
    }
}

fn add(ty: TypeRef, found: &mut Vec<&'static TypeDef>) {
    let TypeRef::Def(def) = ty else { return };
    if found.iter().any(|known| known.name == def.name) {
        return;
    }
    match def.kind {
        TypeKind::Struct(fields) | TypeKind::Union(fields) => collect(fields, found),
        TypeKind::Alias { of, .. } => add(of, found),
        TypeKind::Enum { .. } => {}
    }
    found.push(def);
}

/// Returns the description of a module.
pub fn describe(module: &Module, services: &[Described]) -> Value {
    let mut messages: Vec<&'static MessageDef> = Vec::new();
    for def in services.iter().flat_map(Described::messages) {
        if !messages.iter().any(|known| known.name == def.name) {
            messages.push(def);
        }
    }
    let mut types = Vec::new();
    messages.iter().for_each(|def| collect(def.fields(), &mut types));
    let (mut structs, mut unions, mut enums, mut flags) = (vec![], vec![], vec![], vec![]);
    let mut aliases = Map::new();
    for def in types {
        match def.kind {
            TypeKind::Struct(fields) => structs.push(named(def.name, fields)),
            TypeKind::Union(fields) => unions.push(named(def.name, fields)),
            TypeKind::Enum { base, flags: is_flags, members } => {
                let mut parts = vec![json!(def.name)];
                parts.extend(members.iter().map(|m| json!([m.name, m.value])));
                parts.push(json!({ "enumtype": base }));
                if is_flags { &mut flags } else { &mut enums }.push(Value::from(parts));
            }
            TypeKind::Alias { of, length } => {
                let mut alias = json!({ "type": of.spelling() });
                if let Some(length) = length {
                    alias["length"] = length.into();
                }
                aliases.insert(def.name.into(), alias);
            }
        }
    }
    let messages: Vec<Value> = messages.into_iter().map(message).collect();
    let services = services.iter().map(|s| (s.request.name.to_owned(), s.service()));
    let mut document = json!({
        "module": module.name,
        "types": structs,
        "messages": messages,
        "unions": unions,
        "enums": enums,
        "enumflags": flags,
        "services": Value::Object(services.collect()),
        "options": { "version": module.version },
        "aliases": Value::Object(aliases),
        "imports": [],
        "counters": [],
        "paths": [],
    });
    let text = document.to_string();
    document["vl_api_version"] = format!("0x{:08x}", crate::schema::crc32(0, &text)).into();
    document
}
