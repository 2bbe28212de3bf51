// SPDX-License-Identifier: GPL-2.0

//! Memory that the device and the peer write into at any time.

use std::ptr::null_mut;

/// Pages of this process.
pub(crate) struct Memory {
    base: *mut u8,
    len: usize,
}

impl Memory {
    /// Maps `len` zero bytes, at the start of a page.
    pub(super) fn new(len: usize) -> Result<Memory, String> {
        // SAFETY: an anonymous mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(super::os_error("mmap"));
        }
        Ok(Memory {
            base: base.cast(),
            len,
        })
    }

    /// Address of `len` bytes at `offset`.
    pub(super) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "outside of the memory"
        );
        // SAFETY: the result lies in the mapping, or one past its end, as just checked.
        unsafe { self.base.add(offset) }
    }

    /// The address as the peer is told it.
    pub(crate) fn address(&self, offset: usize) -> u64 {
        self.at(offset, 0) as u64
    }

    /// Copies out of the memory.
    pub(crate) fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let from = self.at(offset, len);
        (0..len)
            // SAFETY: the range was checked; a volatile read takes whatever the device wrote.
            .map(|n| unsafe { from.add(n).read_volatile() })
            .collect()
    }

    /// Copies into the memory.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        for (n, byte) in bytes.iter().enumerate() {
            // SAFETY: the range was checked.
            unsafe { to.add(n).write_volatile(*byte) };
        }
    }

    /// Fills a range with one byte.
    pub(crate) fn fill(&mut self, offset: usize, len: usize, byte: u8) {
        let to = self.at(offset, len);
        // SAFETY: the range was checked.
        unsafe { to.write_bytes(byte, len) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}
