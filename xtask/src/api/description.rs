//! VPP's descriptions of its messages: `<folder>/<module>.api.json`.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;

/// A module with its messages and all types that these name.
pub struct Module {
    pub name: String,
    /// Folder that clients find it in.
    pub folder: String,
    json: Value,
}

/// A field of a message or type.
pub struct Field {
    /// Name in the form of fields: `u32`, `vl_api_prefix_t`.
    pub ty: String,
    pub name: String,
    /// Fixed number of values, or of bytes of a string.
    pub length: Option<u64>,
    /// Name of the field that says how many values there are.
    pub count: Option<String>,
    pub options: Map<String, Value>,
}

impl Field {
    /// Returns a field without a name.
    pub fn of(ty: String, length: Option<u64>) -> Field {
        Field { ty, name: String::new(), length, count: None, options: Map::new() }
    }
}

/// A message.
pub struct Message {
    /// Fields after the message's id.
    pub fields: Vec<Field>,
    pub options: Map<String, Value>,
}

/// A defined type.
pub enum Type {
    Struct(Vec<Field>),
    Union(Vec<Field>),
    Enum { base: String, is_flags: bool, members: Vec<(String, i64)> },
    Alias { of: String, length: Option<u64> },
}

/// Messages around a request.
#[derive(Default)]
pub struct Service {
    pub reply: Option<String>,
    /// Details, or events.
    pub others: Vec<String>,
}

/// Reads all descriptions below a folder.
pub fn read_all(dir: &Path) -> Result<Vec<Module>> {
    let mut modules = Vec::new();
    for folder in ["core", "plugins"] {
        let dir = dir.join(folder);
        for entry in fs::read_dir(&dir).with_context(|| format!("read {}", dir.display()))? {
            let path = entry?.path();
            let about = || format!("{}", path.display());
            let text = fs::read_to_string(&path).with_context(about)?;
            let json: Value = serde_json::from_str(&text).with_context(about)?;
            let name = json["module"].as_str().with_context(about)?.to_owned();
            modules.push(Module { name, folder: folder.into(), json });
        }
    }
    Ok(modules)
}

impl Module {
    pub fn version(&self) -> &str {
        self.json["options"]["version"].as_str().unwrap_or_default()
    }

    pub fn has_request(&self, name: &str) -> bool {
        self.json["services"].get(name).is_some()
    }

    pub fn service(&self, request: &str) -> Service {
        let service = &self.json["services"][request];
        let name = |key: &str| service[key].as_str().filter(|name| *name != "null");
        let events = service["events"].as_array().into_iter().flatten();
        let others = name("stream_msg").into_iter().chain(events.filter_map(Value::as_str));
        Service {
            reply: name("reply").map(str::to_owned),
            others: others.map(str::to_owned).collect(),
        }
    }

    /// Returns what follows the name `name` in a list of the description.
    fn entry(&self, list: &str, name: &str) -> Option<&[Value]> {
        let all = self.json[list].as_array()?;
        let parts = all.iter().filter_map(|entry| entry.as_array()?.split_first());
        parts.filter(|(first, _)| *first == name).map(|(_, rest)| rest).next()
    }

    /// Returns the names of all messages, in their order.
    pub fn messages(&self) -> Vec<&str> {
        let all = self.json["messages"].as_array();
        all.into_iter().flatten().filter_map(|message| message[0].as_str()).collect()
    }

    pub fn message(&self, name: &str) -> Result<Message> {
        let parts = self.entry("messages", name).context("is not described")?;
        let options = parts.last().and_then(|last| last["options"].as_object());
        let mut fields = fields(parts)?;
        fields.retain(|field| field.name != "_vl_msg_id");
        Ok(Message { fields, options: options.cloned().unwrap_or_default() })
    }

    /// Returns the type of a name without `vl_api_` and `_t`.
    pub fn ty(&self, name: &str) -> Result<Type> {
        if let Some(parts) = self.entry("types", name) {
            return Ok(Type::Struct(fields(parts)?));
        }
        if let Some(parts) = self.entry("unions", name) {
            return Ok(Type::Union(fields(parts)?));
        }
        for (list, is_flags) in [("enums", false), ("enumflags", true)] {
            let Some(parts) = self.entry(list, name) else { continue };
            let base = parts.last().and_then(|last| last["enumtype"].as_str());
            let member = |part: &Value| Some((part[0].as_str()?.to_owned(), part[1].as_i64()?));
            return Ok(Type::Enum {
                base: base.unwrap_or("u32").to_owned(),
                is_flags,
                members: parts.iter().filter_map(member).collect(),
            });
        }
        let alias = &self.json["aliases"][name];
        let of = alias["type"].as_str().with_context(|| format!("no type `{name}`"))?;
        Ok(Type::Alias { of: of.into(), length: alias["length"].as_u64() })
    }
}

fn fields(parts: &[Value]) -> Result<Vec<Field>> {
    parts.iter().filter_map(Value::as_array).map(|parts| field(parts)).collect()
}

fn field(parts: &[Value]) -> Result<Field> {
    let [Value::String(ty), Value::String(name), rest @ ..] = parts else {
        bail!("{parts:?} is no field");
    };
    let mut field = Field { name: name.clone(), ..Field::of(ty.clone(), None) };
    for part in rest {
        match part {
            Value::Number(n) => field.length = n.as_u64(),
            Value::String(count) => field.count = Some(count.clone()),
            Value::Object(options) => field.options = options.clone(),
            _ => bail!("field `{name}`: {part} is unknown"),
        }
    }
    Ok(field)
}
