// SPDX-License-Identifier: GPL-2.0

//! Building messages.

use crate::sys;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// Longest text of an attribute, in bytes.
pub const TEXT_MAX: usize = 127;

/// A message being built.
///
/// # Invariants
///
/// `skb` is a netlink message with a header that is not finished, used by nobody else.
pub struct Builder {
    skb: *mut sys::sk_buff,
}

impl Builder {
    /// # Safety
    ///
    /// `skb` fulfils the type invariant while the result exists.
    pub(crate) unsafe fn from_raw(skb: *mut sys::sk_buff) -> Self {
        // INVARIANT: As promised by the caller.
        Self { skb }
    }

    /// Adds an attribute.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` if there is no room left.
    pub fn put(&mut self, attr: u16, value: &[u8]) -> Result {
        let len = c_int::try_from(value.len()).map_err(|_| EMSGSIZE)?;
        // SAFETY: The message is valid by the type invariant, the value for its length.
        to_result(unsafe { sys::nla_put(self.skb, c_int::from(attr), len, value.as_ptr().cast()) })
    }

    /// Adds a number of 8 bits.
    ///
    /// # Errors
    ///
    /// As [`Builder::put`].
    pub fn put_u8(&mut self, attr: u16, value: u8) -> Result {
        self.put(attr, &[value])
    }

    /// Adds a number of 16 bits in host byte order.
    ///
    /// # Errors
    ///
    /// As [`Builder::put`].
    pub fn put_u16(&mut self, attr: u16, value: u16) -> Result {
        self.put(attr, &value.to_ne_bytes())
    }

    /// Adds a number of 32 bits in host byte order.
    ///
    /// # Errors
    ///
    /// As [`Builder::put`].
    pub fn put_u32(&mut self, attr: u16, value: u32) -> Result {
        self.put(attr, &value.to_ne_bytes())
    }

    /// Adds a number of 64 bits in host byte order, aligned with an attribute `pad` where needed.
    ///
    /// # Errors
    ///
    /// As [`Builder::put`].
    pub fn put_u64(&mut self, attr: u16, value: u64, pad: u16) -> Result {
        // SAFETY: The message is valid by the type invariant.
        to_result(unsafe {
            sys::smc_rs_helper_nla_put_u64(self.skb, c_int::from(attr), value, c_int::from(pad))
        })
    }

    /// Adds a number with as few bytes as it needs, 4 or 8, in host byte order.
    ///
    /// # Errors
    ///
    /// As [`Builder::put`].
    pub fn put_uint(&mut self, attr: u16, value: u64) -> Result {
        match u32::try_from(value) {
            Ok(small) => self.put_u32(attr, small),
            Err(_) => self.put(attr, &value.to_ne_bytes()),
        }
    }

    /// Adds a text of at most [`TEXT_MAX`] bytes and a NUL at its end.
    ///
    /// # Errors
    ///
    /// As [`Builder::put`]; `EMSGSIZE` for a longer text.
    pub fn put_text(&mut self, attr: u16, text: &[u8]) -> Result {
        let mut bytes = [0; TEXT_MAX + 1];
        bytes
            .get_mut(..text.len())
            .filter(|head| head.len() <= TEXT_MAX)
            .ok_or(EMSGSIZE)?
            .copy_from_slice(text);
        self.put(attr, bytes.get(..=text.len()).unwrap_or(&[]))
    }

    /// Adds a text with a NUL at its end.
    ///
    /// # Errors
    ///
    /// As [`Builder::put`].
    pub fn put_str(&mut self, attr: u16, value: &CStr) -> Result {
        self.put(attr, value.to_bytes_with_nul())
    }

    /// Adds an attribute without value.
    ///
    /// # Errors
    ///
    /// As [`Builder::put`].
    pub fn put_flag(&mut self, attr: u16) -> Result {
        self.put(attr, &[])
    }

    /// Adds an attribute that contains what `fill` adds. If `fill` fails nothing is added.
    ///
    /// # Errors
    ///
    /// Those of `fill`, `EMSGSIZE` if there is no room.
    pub fn nest(&mut self, attr: u16, fill: impl FnOnce(&mut Self) -> Result) -> Result {
        // SAFETY: The message is valid by the type invariant.
        let start = unsafe { sys::smc_rs_helper_nla_nest_start(self.skb, c_int::from(attr)) };
        if start.is_null() {
            return Err(EMSGSIZE);
        }
        let result = fill(self);
        // SAFETY: `start` is the attribute just begun.
        unsafe {
            match result {
                Ok(()) => sys::smc_rs_helper_nla_nest_end(self.skb, start),
                Err(_) => sys::smc_rs_helper_nla_nest_cancel(self.skb, start),
            }
        }
        result
    }
}
