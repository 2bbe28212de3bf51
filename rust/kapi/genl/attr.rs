// SPDX-License-Identifier: GPL-2.0

//! Attributes of a request.

use crate::sys;
use core::slice;
use kernel::prelude::*;

/// What the value of an attribute must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value.
    Flag,
    /// One byte.
    U8,
    /// 16-bit number in host byte order.
    U16,
    /// 32-bit number in host byte order.
    U32,
    /// 64-bit number in host byte order.
    U64,
    /// Text of at most so many bytes, a NUL at its end not counted.
    String(u16),
    /// Text of at most so many bytes with a NUL at its end, which is not counted.
    NulString(u16),
    /// Exactly so many bytes.
    Exact(u16),
    /// At most so many bytes.
    Binary(u16),
    /// Attributes within.
    Nested,
    /// The attribute is refused.
    Reject,
}

/// An attribute that an operation accepts.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Number of the attribute.
    pub attr: u16,
    /// What it must look like.
    pub kind: Kind,
}

impl Policy {
    /// The entry of the C table.
    pub(super) fn to_raw(self) -> sys::nla_policy {
        let (kind, len) = match self.kind {
            Kind::Flag => (sys::NLA_FLAG, 0),
            Kind::U8 => (sys::NLA_U8, 0),
            Kind::U16 => (sys::NLA_U16, 0),
            Kind::U32 => (sys::NLA_U32, 0),
            Kind::U64 => (sys::NLA_U64, 0),
            Kind::String(max) => (sys::NLA_STRING, max),
            Kind::NulString(max) => (sys::NLA_NUL_STRING, max),
            Kind::Exact(len) | Kind::Binary(len) => (sys::NLA_BINARY, len),
            Kind::Nested => (sys::NLA_NESTED, 0),
            Kind::Reject => (sys::NLA_REJECT, 0),
        };
        let mut policy: sys::nla_policy = pin_init::zeroed();
        policy.type_ = kind as u8;
        policy.len = len;
        if let Kind::Exact(len) = self.kind {
            policy.validation_type = sys::nla_policy_validation_NLA_VALIDATE_RANGE as u8;
            policy.__bindgen_anon_1.__bindgen_anon_1.min = len as i16;
            policy.__bindgen_anon_1.__bindgen_anon_1.max = len as i16;
        }
        policy
    }
}

/// The attributes of a request.
///
/// # Invariants
///
/// `table` is null or has `max + 1` pointers, each null or to an attribute that lives for `'a` and
/// fulfils the policy of the operation.
#[derive(Clone, Copy)]
pub struct Attrs<'a> {
    table: *mut *mut sys::nlattr,
    max: u16,
    _message: core::marker::PhantomData<&'a [u8]>,
}

impl<'a> Attrs<'a> {
    /// # Safety
    ///
    /// The arguments fulfil the type invariant.
    pub(super) unsafe fn from_raw(table: *mut *mut sys::nlattr, max: u16) -> Self {
        // INVARIANT: As promised by the caller.
        Self {
            table,
            max,
            _message: core::marker::PhantomData,
        }
    }

    /// The value of an attribute, if the request has it.
    pub fn bytes(&self, attr: u16) -> Option<&'a [u8]> {
        if self.table.is_null() || attr > self.max {
            return None;
        }
        // SAFETY: The index is within the table.
        let attr = unsafe { *self.table.add(usize::from(attr)) };
        if attr.is_null() {
            return None;
        }
        let mut len = 0;
        // SAFETY: The attribute is valid by the type invariant.
        let data = unsafe { sys::smc_rs_helper_nla_data(attr, &mut len) };
        // SAFETY: The attribute has `len` bytes that live for `'a`.
        Some(unsafe { slice::from_raw_parts(data.cast(), len) })
    }

    /// The value of an attribute that must be there.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is missing.
    pub fn required(&self, attr: u16) -> Result<&'a [u8]> {
        self.bytes(attr).ok_or(EINVAL)
    }

    /// A text, without the NUL at its end and what follows.
    pub fn string(&self, attr: u16) -> Option<&'a [u8]> {
        let bytes = self.bytes(attr)?;
        bytes.split(|&byte| byte == 0).next()
    }

    /// A number of 32 bits.
    pub fn u32(&self, attr: u16) -> Option<u32> {
        Some(u32::from_ne_bytes(
            self.bytes(attr)?.get(..4)?.try_into().ok()?,
        ))
    }

    /// A number of 8 bits.
    pub fn u8(&self, attr: u16) -> Option<u8> {
        self.bytes(attr)?.first().copied()
    }

    /// Whether the attribute is there.
    pub fn has(&self, attr: u16) -> bool {
        self.bytes(attr).is_some()
    }
}
