//! Decoded values by name: the one walk over a record that every output format uses.

use std::fmt::Display;
use std::net::IpAddr;

use crate::xdr::{DecodeError, Reader, Writer};
use thalweg_wire::ethernet::MacAddr;

/// One value, in the notation that sflowtool has for it.
#[derive(Clone, Copy)]
pub enum Value<'v> {
    /// Decimal.
    U32(u32),
    /// Decimal.
    U64(u64),
    /// Hexadecimal with `0x`, as short as possible.
    Hex(u32),
    /// Sixteen hexadecimal digits.
    Hex64(u64),
    /// Three decimals.
    F64(f64),
    /// Hundredths of a percent with two decimals; all ones is `unknown`.
    Percent(u32),
    /// A string from the wire: ends at a NUL, control characters are replaced.
    Text(&'v [u8]),
    /// A string of ours.
    Str(&'v str),
    /// A prefix and a string of ours.
    Joined(&'v str, &'v str),
    /// Twelve lower-case hexadecimal digits.
    Mac([u8; 6]),
    /// Upper-case hexadecimal with `-` between bytes.
    Bytes(&'v [u8]),
    /// Dotted IPv4, or all eight groups of an IPv6 address; `-` when unknown.
    Address(Option<IpAddr>),
    /// Dashed lower-case hexadecimal.
    Uuid(&'v [u8; 16]),
    /// Two numbers with `:` between them: a tag or a data source.
    Pair(u32, u32),
    /// Anything else.
    Display(&'v dyn Display),
}

/// The name of a field, with room behind it, so that it is copied by moves of fixed width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    padded: [u8; Name::MOST],
    length: u8,
}

impl Name {
    /// Bytes that a name can have.
    pub const MOST: usize = 48;

    /// A name; the build fails if it is too long and this is evaluated in it, as it should be.
    #[must_use]
    pub const fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        assert!(bytes.len() <= Name::MOST, "the name of a field has at most 48 bytes");
        let mut padded = [0; Name::MOST];
        let mut at = 0;
        while at < bytes.len() {
            padded[at] = bytes[at];
            at += 1;
        }
        Name { padded, length: bytes.len() as u8 }
    }

    /// The name.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.padded[..self.len()]
    }

    /// Its length.
    #[must_use]
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.length.into()
    }

    /// The name, and zeros behind it.
    #[inline(always)]
    pub(crate) fn padded(&self) -> &[u8; Name::MOST] {
        &self.padded
    }
}

/// The [`Name`] of a field, made when the program is built.
macro_rules! name {
    ($text:expr) => {
        const { &$crate::value::Name::new($text) }
    };
}
pub(crate) use name;

/// Receives the fields of a record in wire order.
///
/// Records that hold lists ask [`Visitor::structured`] whether to open lists and objects or to
/// number the names of their fields.
pub trait Visitor {
    /// A field whose name is `prefix` followed by `name`.
    fn prefixed(&mut self, prefix: &str, name: &'static Name, value: Value<'_>);

    /// A field.
    #[inline(always)]
    fn field(&mut self, name: &'static Name, value: Value<'_>) {
        self.prefixed("", name, value);
    }

    /// A field whose name is put together from `prefix` and a suffix built on the spot.
    fn numbered(&mut self, name: std::fmt::Arguments<'_>, value: Value<'_>);

    /// A byte that the sampled header does not reach, for outputs that are compared byte for byte
    /// with those of a program that reads on regardless.
    fn beyond(&self, _header: &[u8], _at: usize) -> Option<u8> {
        None
    }

    /// True if lists and objects mean something here.
    fn structured(&self) -> bool {
        false
    }

    /// A list opens.
    fn open_list(&mut self, _name: &str) {}
    /// A bare value in a list.
    fn item(&mut self, _value: Value<'_>) {}
    /// An object opens in a list.
    fn open_object(&mut self) {}
    /// The object ends.
    fn close_object(&mut self) {}
    /// The list ends.
    fn close_list(&mut self) {}
}

/// A record or a part of one, with a fixed order of fields.
pub trait Record<'a>: Sized {
    /// Reads the fields; bytes after the last known one are left alone.
    ///
    /// # Errors
    /// When a mandatory field is missing or malformed.
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError>;
    /// Writes the fields.
    fn encode(&self, w: &mut Writer<'_>);
    /// Shows the fields, their names preceded by `prefix`.
    fn visit<V: Visitor>(&self, prefix: &str, v: &mut V);
}

/// A type that a record's field can have.
pub(crate) trait Field<'a>: Sized {
    fn get(r: &mut Reader<'a>, what: &'static str) -> Result<Self, DecodeError>;
    fn put(&self, w: &mut Writer<'_>);
    /// `None` hides the field.
    fn value(&self) -> Option<Value<'_>>;
}

/// A percentage in hundredths, as sFlow writes it; all ones means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Percent(pub u32);

impl Percent {
    /// The percentage, when known.
    #[must_use]
    pub fn get(self) -> Option<f64> {
        (self.0 != u32::MAX).then(|| f64::from(self.0) / 100.0)
    }
}

/// A number that is shown in sixteen hexadecimal digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hex64(pub u64);

/// Sixteen bytes that identify a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Uuid(pub [u8; 16]);

/// A string from the wire. Nothing promises that it is UTF-8.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// The string with whatever is not UTF-8 replaced.
    #[must_use]
    pub fn to_str(self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }
}

impl AsRef<[u8]> for Text<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(s: &'a str) -> Self {
        Text(s.as_bytes())
    }
}

/// An address with its type; `None` is the unknown type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Address(pub Option<IpAddr>);

macro_rules! field {
    (
        $ty:ty, |$r:ident, $what:ident| $get:expr, |$s:ident, $w:ident| $put:expr,
        |$v:ident| $value:expr
    ) => {
        impl<'a> Field<'a> for $ty {
            fn get($r: &mut Reader<'a>, $what: &'static str) -> Result<Self, DecodeError> {
                $get
            }
            fn put(&self, $w: &mut Writer<'_>) {
                let $s = self;
                $put
            }
            fn value(&self) -> Option<Value<'_>> {
                let $v = self;
                $value
            }
        }
    };
}

field!(u32, |r, what| r.u32(what), |s, w| w.u32(*s), |v| Some(Value::U32(*v)));
field!(u64, |r, what| r.u64(what), |s, w| w.u64(*s), |v| Some(Value::U64(*v)));
field!(f32, |r, what| r.u32(what).map(f32::from_bits), |s, w| w.u32(s.to_bits()), |v| Some(
    Value::F64(f64::from(*v))
));
field!(Percent, |r, what| r.u32(what).map(Percent), |s, w| w.u32(s.0), |v| Some(Value::Percent(
    v.0
)));
field!(Hex64, |r, what| r.u64(what).map(Hex64), |s, w| w.u64(s.0), |v| Some(Value::Hex64(v.0)));
// Eight bytes on the wire.
field!(MacAddr, |r, what| r.mac(what).map(MacAddr), |s, w| w.padded(&s.0), |v| Some(Value::Mac(
    v.0
)));
field!(
    Uuid,
    |r, what| {
        let mut id = [0; 16];
        id.copy_from_slice(r.bytes(16, what)?);
        Ok(Uuid(id))
    },
    |s, w| w.padded(&s.0),
    |v| Some(Value::Uuid(&v.0))
);
field!(Address, |r, what| r.address(what).map(Address), |s, w| w.address(s.0), |v| Some(
    Value::Address(v.0)
));

impl<'a> Field<'a> for Text<'a> {
    fn get(r: &mut Reader<'a>, what: &'static str) -> Result<Self, DecodeError> {
        r.opaque(what).map(Text)
    }
    fn put(&self, w: &mut Writer<'_>) {
        w.opaque(self.0);
    }
    fn value(&self) -> Option<Value<'_>> {
        (!self.0.is_empty()).then_some(Value::Text(self.0))
    }
}

/// A field that later versions of a record appended.
impl<'a, F: Field<'a>> Field<'a> for Option<F> {
    fn get(r: &mut Reader<'a>, what: &'static str) -> Result<Self, DecodeError> {
        if r.remaining() == 0 { Ok(None) } else { F::get(r, what).map(Some) }
    }
    fn put(&self, w: &mut Writer<'_>) {
        if let Some(field) = self {
            field.put(w);
        }
    }
    fn value(&self) -> Option<Value<'_>> {
        self.as_ref().and_then(Field::value)
    }
}

/// Declares a record whose fields are simply one after the other: the structure, its codec and its
/// names come from one list. An optional `, "name" => "value"` pair is shown before the fields,
/// with the prefix before the value.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $name:ident <$lt:lifetime> $(, $kind:literal => $what:literal)? { $($body:tt)* }
    ) => {
        record!(@ [$(#[$meta])*] [$name<$lt>] [$lt] [$($kind => $what)?] $name { $($body)* });
    };
    (
        $(#[$meta:meta])*
        $name:ident $(, $kind:literal => $what:literal)? { $($body:tt)* }
    ) => {
        record!(@ [$(#[$meta])*] [$name] ['r] [$($kind => $what)?] $name { $($body)* });
    };
    (
        @ [$($meta:tt)*] [$($ty:tt)*] [$lt:lifetime] [$($kind:literal => $what:literal)?]
        $name:ident { $( $(#[$fmeta:meta])* $field:ident : $fty:ty = $text:literal ),* $(,)? }
    ) => {
        $($meta)*
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $($ty)* {
            $( $(#[$fmeta])* #[doc = concat!("`", $text, "`")] pub $field: $fty, )*
        }

        impl<$lt> $crate::value::Record<$lt> for $($ty)* {
            fn decode(
                r: &mut $crate::xdr::Reader<$lt>,
            ) -> Result<Self, $crate::xdr::DecodeError> {
                Ok($name { $( $field: $crate::value::Field::get(r, $text)?, )* })
            }
            fn encode(&self, w: &mut $crate::xdr::Writer<'_>) {
                $( $crate::value::Field::put(&self.$field, w); )*
            }
            fn visit<V: $crate::value::Visitor>(&self, prefix: &str, v: &mut V) {
                $( v.field($crate::value::name!($kind), $crate::value::Value::Joined(prefix, $what)); )?
                $( if let Some(value) = $crate::value::Field::value(&self.$field) {
                    v.prefixed(prefix, $crate::value::name!($text), value);
                } )*
            }
        }
    };
}
pub(crate) use record;

/// Decodes the body of a record. Some agents pad an address of unknown type to four bytes, which
/// shows by these bytes being left over or by what follows making no sense.
pub(crate) fn decode_record<'a, R: Record<'a>>(r: &mut Reader<'a>) -> Result<R, DecodeError> {
    let start = r.clone();
    let first = R::decode(r);
    let unknown = r.unknown_addresses();
    if unknown > 0 && (first.is_err() || r.remaining() == 4 * unknown) {
        let mut padded = start.pad_unknown_address();
        if let Ok(record) = R::decode(&mut padded) {
            *r = padded;
            return Ok(record);
        }
    }
    first
}

/// Declares the enumeration of the records that can stand in a kind of sample, by tag. The string
/// behind the tag is the prefix of the record's field names.
macro_rules! records {
    (
        $(#[$meta:meta])*
        $name:ident <$lt:lifetime> {
            $(
                $(#[$vmeta:meta])*
                $variant:ident($ty:ty) = $ent:literal : $fmt:literal $(, $prefix:literal)? ;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name<$lt> {
            $( $(#[$vmeta])* #[doc = concat!("(", $ent, ":", $fmt, ")")] $variant($ty), )*
            /// A record that is not decoded, with its body.
            Unknown($crate::model::Tag, &$lt [u8]),
        }

        impl<$lt> $name<$lt> {
            /// The record's tag.
            #[must_use]
            pub fn tag(&self) -> $crate::model::Tag {
                match self {
                    $( $name::$variant(_) => $crate::model::Tag::new($ent, $fmt), )*
                    $name::Unknown(tag, _) => *tag,
                }
            }

            /// Decodes the body of a record with the given tag. A body that is longer than known
            /// is a later version of the record: the rest is ignored.
            ///
            /// # Errors
            /// When the body is too short or malformed.
            pub fn decode(
                tag: $crate::model::Tag,
                r: &mut $crate::xdr::Reader<$lt>,
            ) -> Result<Self, $crate::xdr::DecodeError> {
                Ok(match (tag.enterprise(), tag.format()) {
                    $( ($ent, $fmt) => $name::$variant($crate::value::decode_record(r)?), )*
                    _ => $name::Unknown(tag, r.rest()),
                })
            }

            /// Decodes a body and shows its fields, without keeping the record. Returns whether the
            /// tag is known.
            ///
            /// # Errors
            /// The errors of [`decode`](Self::decode); nothing is shown then.
            pub fn show<V: $crate::value::Visitor>(
                tag: $crate::model::Tag,
                r: &mut $crate::xdr::Reader<$lt>,
                v: &mut V,
            ) -> Result<bool, $crate::xdr::DecodeError> {
                match (tag.enterprise(), tag.format()) {
                    $( ($ent, $fmt) => {
                        let record: $ty = $crate::value::decode_record(r)?;
                        #[allow(unused_mut, unused_assignments)]
                        let mut prefix = "";
                        $( prefix = $prefix; )?
                        $crate::value::Record::visit(&record, prefix, v);
                        Ok(true)
                    } )*
                    _ => Ok(false),
                }
            }

            /// Writes tag, length and body.
            pub fn encode(&self, w: &mut $crate::xdr::Writer<'_>) {
                w.u32(self.tag().0);
                let mark = w.begin();
                match self {
                    $( $name::$variant(record) => $crate::value::Record::encode(record, w), )*
                    $name::Unknown(_, body) => w.padded(body),
                }
                w.end(mark);
            }

            /// Shows the fields; an unknown record shows none.
            pub fn visit<V: $crate::value::Visitor>(&self, v: &mut V) {
                match self {
                    $( $name::$variant(record) => {
                        #[allow(unused_mut, unused_assignments)]
                        let mut prefix = "";
                        $( prefix = $prefix; )?
                        $crate::value::Record::visit(record, prefix, v);
                    } )*
                    $name::Unknown(..) => {}
                }
            }
        }
    };
}
pub(crate) use records;
