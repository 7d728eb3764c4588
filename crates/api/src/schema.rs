//! Definitions of messages and types, as data: for CRCs and for the JSON description.

use crate::wire::Wire;

/// A field's type.
#[derive(Clone, Copy, Debug)]
pub enum TypeRef {
    /// A primitive type: `u32`, `string`.
    Prim(&'static str),
    /// A defined one.
    Def(&'static TypeDef),
}

impl TypeRef {
    /// Returns its spelling in fields.
    pub fn spelling(&self) -> String {
        match self {
            TypeRef::Prim(name) => (*name).to_owned(),
            TypeRef::Def(def) => format!("vl_api_{}_t", def.name),
        }
    }
}

/// Number of values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// One.
    One,
    /// A fixed number; of bytes, for a `string`.
    Fixed(usize),
    /// A number in an earlier field of this name.
    Counted(&'static str),
    /// Variable, with its own length (`string` only).
    Open,
}

/// Value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A text.
    Text(&'static str),
}

/// A field of a message or type.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: TypeRef,
    /// Number of values.
    pub arity: Arity,
    /// Options: `default`, `discriminator`, `case`.
    pub options: &'static [(&'static str, Value)],
}

impl Field {
    /// Creates a field of type `T`.
    pub const fn of<T: Wire>(
        name: &'static str,
        options: &'static [(&'static str, Value)],
    ) -> Self {
        Field { name, ty: T::TYPE, arity: T::ARITY, options }
    }

    /// Creates a field of as many `T` as the field `count` says.
    pub const fn counted<T: Wire>(
        name: &'static str,
        count: &'static str,
        options: &'static [(&'static str, Value)],
    ) -> Self {
        Field { name, ty: T::TYPE, arity: Arity::Counted(count), options }
    }

    fn render(&self) -> String {
        let (ty, name) = (self.ty.spelling(), self.name);
        match self.arity {
            Arity::One => format!("['{ty}', '{name}']"),
            Arity::Fixed(n) => format!("['{ty}', '{name}', {n}, None]"),
            Arity::Counted(by) => format!("['{ty}', '{name}', 0, '{by}']"),
            Arity::Open => format!("['{ty}', '{name}', 0, None]"),
        }
    }
}

/// A member of an enumeration.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name in the API.
    pub name: &'static str,
    /// Its value.
    pub value: i64,
    /// True if it was added later, without changing the CRCs that it is part of.
    pub later: bool,
}

/// A defined type.
#[derive(Clone, Copy, Debug)]
pub struct TypeDef {
    /// Its name, without `vl_api_` and `_t`.
    pub name: &'static str,
    /// Its kind.
    pub kind: TypeKind,
}

/// Kinds of types.
#[derive(Clone, Copy, Debug)]
pub enum TypeKind {
    /// Consecutive fields.
    Struct(&'static [Field]),
    /// Fields that share their bytes.
    Union(&'static [Field]),
    /// A number with names.
    Enum {
        /// Type of the number.
        base: &'static str,
        /// True if it is declared as flags.
        flags: bool,
        /// The names.
        members: &'static [Member],
    },
    /// An alias.
    Alias {
        /// The aliased type.
        of: TypeRef,
        /// Length, if it is an array.
        length: Option<usize>,
    },
}

/// Leading fields of a message, after its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Fields from a client: `client_index`, `context`.
    Request,
    /// A reply: `context`, `retval`.
    Reply,
    /// Details, or a reply without `retval`: `context`.
    Details,
    /// An event that a client subscribed to: `client_index`.
    Event,
    /// No leading fields.
    Bare,
}

impl Kind {
    /// Returns these fields.
    pub fn head(self) -> &'static [Field] {
        const CLIENT: Field = Field::of::<u32>("client_index", &[]);
        const CONTEXT: Field = Field::of::<u32>("context", &[]);
        const RETVAL: Field = Field::of::<i32>("retval", &[]);
        match self {
            Kind::Request => &[CLIENT, CONTEXT],
            Kind::Reply => &[CONTEXT, RETVAL],
            Kind::Details => &[CONTEXT],
            Kind::Event => &[CLIENT],
            Kind::Bare => &[],
        }
    }
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct MessageDef {
    /// Its name.
    pub name: &'static str,
    /// Its leading fields.
    pub kind: Kind,
    /// Its own fields.
    pub body: &'static [Field],
    /// Options: `deprecated`, `vat_help`.
    pub options: &'static [(&'static str, Option<&'static str>)],
}

impl MessageDef {
    /// Returns all fields after the message's id.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.kind.head().iter().chain(self.body)
    }

    /// Returns the checksum by which both sides check that they have the same definition: of the
    /// fields and of their types, not of the name.
    pub fn crc(&self) -> u32 {
        let fields: Vec<&Field> = self.fields().collect();
        chain(0, &fields)
    }

    /// Returns name and checksum, as in the table of messages.
    pub fn name_crc(&self) -> String {
        format!("{}_{:08x}", self.name, self.crc())
    }
}

/// Continues the checksum `crc` over these fields.
fn chain(crc: u32, fields: &[&Field]) -> u32 {
    let rendered: Vec<String> = fields.iter().map(|field| field.render()).collect();
    let crc = crc32(crc, &format!("[{}]", rendered.join(", ")));
    let types = fields.iter().filter_map(|field| match field.ty {
        TypeRef::Def(def) => Some(&def.kind),
        TypeRef::Prim(_) => None,
    });
    types.fold(crc, |crc, kind| match kind {
        TypeKind::Struct(fields) | TypeKind::Union(fields) => {
            chain(crc, &fields.iter().collect::<Vec<_>>())
        }
        TypeKind::Enum { members, .. } => {
            let members = members.iter().filter(|member| !member.later);
            let members: Vec<String> =
                members.map(|m| format!("['{}', {}]", m.name, m.value)).collect();
            crc32(crc, &format!("[{}]", members.join(", ")))
        }
        // The type of an alias is not part of the checksum.
        TypeKind::Alias { .. } => crc32(crc, "[]"),
    })
}

/// Continues zlib's CRC-32; called for a few hundred short texts, once.
pub(crate) fn crc32(crc: u32, text: &str) -> u32 {
    let bit = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !text.bytes().fold(!crc, |crc, byte| (0..8).fold(crc ^ u32::from(byte), bit))
}

/// A module, described in one file.
#[derive(Debug)]
pub struct Module {
    /// Its name: `interface` for `interface.api.json`.
    pub name: &'static str,
    /// Folder that it is installed in: `core` or `plugins`.
    pub folder: &'static str,
    /// Version of the messages.
    pub version: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_zlib() {
        assert_eq!(crc32(0, "123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, "1234"), "56789"), 0xcbf4_3926);
        let ping =
            MessageDef { name: "control_ping", kind: Kind::Request, body: &[], options: &[] };
        assert_eq!(ping.name_crc(), "control_ping_51077d14");
        let reply = MessageDef { name: "x_reply", kind: Kind::Reply, body: &[], options: &[] };
        assert_eq!(reply.crc(), 0xe8d4_e804);
    }
}
