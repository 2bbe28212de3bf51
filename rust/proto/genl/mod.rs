// SPDX-License-Identifier: GPL-2.0

//! Numbers and types of what goes over generic netlink: one table for the module, the programs and
//! their tests.
//!
//! [`smc`] is the family `SMC_GEN_NETLINK` and [`pnet`] is `SMC_PNETID`, both as in
//! `include/uapi/linux/smc.h`; [`event`] is `SMC_RS`, which is of this project.
//! `Documentation/netlink/specs` has the same in the kernel's form.

pub mod event;
pub mod pnet;
pub mod smc;

/// How the value of an attribute is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Fills up, so that the attribute behind it is aligned.
    Pad,
    /// One byte.
    U8,
    /// Two bytes in the order of the host.
    U16,
    /// Four bytes in the order of the host.
    U32,
    /// Eight bytes in the order of the host.
    U64,
    /// Four or eight bytes, whichever the value needs.
    Uint,
    /// Text with a NUL behind it.
    String,
    /// Bytes as another interface defines them.
    Binary,
    /// Attributes of another set.
    Nest(&'static Set),
}

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name without what all of the set begin with.
    pub name: &'static str,
    /// Its number.
    pub number: u16,
    /// Its type.
    pub kind: Type,
}

/// The attributes that can stand side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// What the names of all of them begin with in C.
    pub prefix: &'static str,
    /// The attributes, by number.
    pub attributes: &'static [Attribute],
}

/// Numbers that have a name: a command or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name without what all of them begin with.
    pub name: &'static str,
    /// Its number.
    pub number: u8,
}

/// A family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What the names of its commands begin with in C.
    pub prefix: &'static str,
    /// Its commands.
    pub commands: &'static [Named],
    /// All sets of its attributes; the first one has those of messages.
    pub sets: &'static [&'static Set],
}

/// A module with a constant for each number, and the table of all of them.
macro_rules! named {
    ($(#[$meta:meta])* $module:ident { $($name:ident = $number:literal,)* }) => {
        $(#[$meta])*
        pub mod $module {
            use crate::genl::Named;
            $(
                #[doc = concat!("Number of `", stringify!($name), "`.")]
                pub const $name: u8 = $number;
            )*
            /// All of them.
            pub const ALL: &[Named] = &[
                $(Named { name: stringify!($name), number: $number },)*
            ];
        }
    };
}

/// A module with a constant for the number of each attribute, and the set of all of them.
macro_rules! attributes {
    ($(#[$meta:meta])* $module:ident, $prefix:literal {
        $($name:ident = $number:literal: $kind:ident $(($inner:ident))?,)*
    }) => {
        $(#[$meta])*
        pub mod $module {
            use crate::genl::{Attribute, Set, Type};
            $(
                #[doc = concat!("Number of `", stringify!($name), "`.")]
                pub const $name: u16 = $number;
            )*
            /// All of them.
            pub const SET: Set = Set {
                prefix: $prefix,
                attributes: &[
                    $(Attribute {
                        name: stringify!($name),
                        number: $number,
                        kind: Type::$kind $((&super::$inner::SET))?,
                    },)*
                ],
            };
        }
    };
}

pub(crate) use attributes;
pub(crate) use named;
