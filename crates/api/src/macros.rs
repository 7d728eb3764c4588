//! Types that a struct's derive cannot make: enumerations, aliases, unions.

/// Declares enumerations. A value without a name is kept, and `known` returns false for it.
///
/// ```
/// thalweg_api::api_enum! {
///     /// Receive mode of a queue.
///     pub struct RxMode: u32 = "rx_mode" {
///         /// Adaptive.
///         ADAPTIVE = 3, "RX_MODE_API_ADAPTIVE";
///     }
/// }
/// assert!(RxMode::ADAPTIVE.known() && !RxMode(9).known());
/// ```
///
/// `flags "name"` instead of `= "name"` declares it as flags; `later` before a member excludes it
/// from checksums: it was added without breaking older clients.
#[macro_export]
macro_rules! api_enum {
    (@flags =) => { false };
    (@flags flags) => { true };
    (@later) => { false };
    (@later later) => { true };
    ($($(#[$meta:meta])* $vis:vis struct $name:ident: $base:ident $flags:tt $api:literal {
        $($(#[$doc:meta])* $member:ident = $value:literal, $($later:ident)? $text:literal;)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        $vis struct $name(
            /// The number.
            pub $base
        );

        #[allow(dead_code)]
        impl $name {
            $($(#[$doc])* pub const $member: Self = Self($value);)*

            /// Returns true if the value has a name.
            pub fn known(self) -> bool {
                [$($value),*].contains(&self.0)
            }

            /// Returns true if a bit is set that none of these has.
            pub fn is_beyond(self, all: &[Self]) -> bool {
                self.0 & !all.iter().fold(0, |bits, flag| bits | flag.0) != 0
            }

            /// Returns true if all bits of `flag` are set.
            pub fn has(self, flag: Self) -> bool {
                self.0 & flag.0 == flag.0
            }
        }

        impl $crate::Wire for $name {
            const TYPE: $crate::schema::TypeRef =
                $crate::schema::TypeRef::Def(&$crate::schema::TypeDef {
                    name: $api,
                    kind: $crate::schema::TypeKind::Enum {
                        base: stringify!($base),
                        flags: $crate::api_enum!(@flags $flags),
                        members: &[$($crate::schema::Member {
                            name: $text,
                            value: $value,
                            later: $crate::api_enum!(@later $($later)?),
                        }),*],
                    },
                });
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                $crate::Wire::encode(&self.0, out);
            }
            fn decode(
                input: &mut $crate::wire::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::wire::Truncated> {
                <$base as $crate::Wire>::decode(input).map(Self)
            }
        }
    )*};
}

/// Declares other names for types.
///
/// ```
/// thalweg_api::api_alias! {
///     /// A MAC address.
///     #[derive(Default)]
///     pub struct MacAddress([u8; 6]) = "mac_address";
/// }
/// ```
#[macro_export]
macro_rules! api_alias {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident($of:ty) = $api:literal;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $vis struct $name(
            /// The aliased type.
            pub $of
        );

        impl $crate::Wire for $name {
            const TYPE: $crate::schema::TypeRef =
                $crate::schema::TypeRef::Def(&$crate::schema::TypeDef {
                    name: $api,
                    kind: $crate::schema::TypeKind::Alias {
                        of: <$of as $crate::Wire>::TYPE,
                        length: match <$of as $crate::Wire>::ARITY {
                            $crate::schema::Arity::Fixed(n) => ::std::option::Option::Some(n),
                            _ => ::std::option::Option::None,
                        },
                    },
                });
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                $crate::Wire::encode(&self.0, out);
            }
            fn decode(
                input: &mut $crate::wire::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::wire::Truncated> {
                <$of as $crate::Wire>::decode(input).map(Self)
            }
        }
    )*};
}

/// Declares a union: `size` bytes that hold one of several types, padded with zeros. Another field
/// selects the type.
#[macro_export]
macro_rules! api_union {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident($size:literal) = $api:literal {
        $($arm:ident: $of:ty $(, case $case:literal)?;)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        $vis struct $name(
            /// The bytes.
            pub [u8; $size]
        );

        impl $crate::Wire for $name {
            const TYPE: $crate::schema::TypeRef =
                $crate::schema::TypeRef::Def(&$crate::schema::TypeDef {
                    name: $api,
                    kind: $crate::schema::TypeKind::Union(&[
                        $($crate::schema::Field::of::<$of>(
                            stringify!($arm),
                            &[$(("case", $crate::schema::Value::Text($case)))?],
                        )),*
                    ]),
                });
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                out.extend_from_slice(&self.0);
            }
            fn decode(
                input: &mut $crate::wire::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::wire::Truncated> {
                input.array().map(Self)
            }
        }
    )*};
}
