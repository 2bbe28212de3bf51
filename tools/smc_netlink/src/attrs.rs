// SPDX-License-Identifier: GPL-2.0

//! Attributes of messages.

use netlink_packet_core::{DefaultNla, Emitable, Nla, NlasIterator};

use crate::{Error, Result};

/// The attributes of one level of a message. Of several with the same number the last one counts.
#[derive(Clone, Debug, Default)]
pub struct Attrs(Vec<(u16, Vec<u8>)>);

impl Attrs {
    /// Takes a message, or the value of a nested attribute, apart.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] when lengths do not fit.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let attrs = NlasIterator::new(bytes).map(|attr| match attr {
            Ok(attr) => Ok((attr.kind(), attr.value().to_vec())),
            Err(_) => Err(Error::Malformed("an attribute is longer than the message")),
        });
        Ok(Self(attrs.collect::<Result<_>>()?))
    }

    /// The value of an attribute.
    pub fn bytes(&self, number: u16) -> Option<&[u8]> {
        let mut found = self.0.iter().rev().filter(|attr| attr.0 == number);
        found.next().map(|attr| attr.1.as_slice())
    }

    /// A number of any length, in the byte order of the host.
    pub fn uint(&self, number: u16) -> Option<u64> {
        let bytes = self.bytes(number)?;
        match bytes.len() {
            1 => Some(u64::from(bytes[0])),
            2 => Some(u64::from(u16::from_ne_bytes(bytes.try_into().ok()?))),
            4 => Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?))),
            8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }

    /// A number of up to 32 bits.
    pub fn u32(&self, number: u16) -> Option<u32> {
        self.uint(number).and_then(|value| value.try_into().ok())
    }

    /// A number of up to 8 bits.
    pub fn u8(&self, number: u16) -> Option<u8> {
        self.uint(number).and_then(|value| value.try_into().ok())
    }

    /// A number that says yes or no.
    pub fn flag(&self, number: u16) -> bool {
        self.uint(number).unwrap_or(0) != 0
    }

    /// A text up to its NUL, without the blanks it is padded with.
    pub fn text(&self, number: u16) -> Option<String> {
        self.bytes(number).map(text)
    }

    /// The attributes within an attribute; none when it is not there.
    ///
    /// # Errors
    ///
    /// As [`Attrs::parse`].
    pub fn nested(&self, number: u16) -> Result<Self> {
        self.bytes(number)
            .map_or_else(|| Ok(Self::default()), Self::parse)
    }

    /// Whether there is such an attribute.
    pub fn has(&self, number: u16) -> bool {
        self.bytes(number).is_some()
    }

    /// Every nested attribute, whatever its number.
    ///
    /// # Errors
    ///
    /// As [`Attrs::parse`].
    pub fn all_nested(&self) -> Result<Vec<Self>> {
        self.0.iter().map(|attr| Self::parse(&attr.1)).collect()
    }
}

/// The text in a field: up to a NUL, without blanks behind it.
pub(crate) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes)
        .trim_end_matches(' ')
        .to_owned()
}

/// Attributes for a request.
#[derive(Clone, Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// No attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an attribute.
    #[must_use]
    pub fn put(mut self, number: u16, value: &[u8]) -> Self {
        let attr = DefaultNla::new(number, value.to_vec());
        let start = self.0.len();
        debug_assert_eq!(attr.kind(), number);
        self.0.resize(start + attr.buffer_len(), 0);
        attr.emit(&mut self.0[start..]);
        self
    }

    /// Adds a text with a NUL behind it.
    #[must_use]
    pub fn text(self, number: u16, text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.put(number, &bytes)
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let inner = Writer::new().put(3, &7_u64.to_ne_bytes()).into_bytes();
        let bytes = Writer::new()
            .put(1, &[5])
            .text(2, "NET  ")
            .put(9, &inner)
            .into_bytes();
        // Length and number, the value, padding to four bytes.
        assert_eq!(&bytes[..8], [5, 0, 1, 0, 5, 0, 0, 0]);
        let attrs = Attrs::parse(&bytes).expect("the lengths fit");
        assert_eq!(attrs.u8(1), Some(5));
        assert_eq!(attrs.text(2).as_deref(), Some("NET"));
        let nested = attrs.nested(9).expect("the lengths fit");
        assert_eq!(nested.uint(3), Some(7));
        assert_eq!(nested.uint(4), None);
        assert!(!attrs.nested(8).expect("nothing is no error").has(0));
    }

    #[test]
    fn an_attribute_that_is_too_long_is_an_error() {
        assert!(Attrs::parse(&[9, 0, 1, 0, 5, 0, 0, 0]).is_err());
        assert!(Attrs::parse(&[3, 0, 1, 0]).is_err());
    }
}
