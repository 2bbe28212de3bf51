// SPDX-License-Identifier: GPL-2.0

//! Reads from a program file what decides whether a library can be preloaded into it.

use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;

const ELF_MAGIC: [u8; 4] = *b"\x7fELF";
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
/// Owner name of the notes that the Go linker writes.
const GO_NOTE: &[u8] = b"Go\0\0";
/// Longest interpreter line that the kernel reads from a script.
const SCRIPT_LINE: usize = 256;
/// Longest piece of a file that is worth reading: tables beyond it are no real program's.
const MAX_PIECE: u64 = 1 << 20;

/// What kind of file a program is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// An ELF program.
    Elf(Elf),
    /// A script run by the named interpreter.
    Script(OsString),
    /// Neither; the kernel has to decide.
    Other,
}

/// The facts about an ELF program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Elf {
    /// 64-bit and little-endian or not.
    pub(crate) is_64_little: bool,
    /// The machine number of the ELF header.
    pub(crate) machine: u16,
    /// Path of the dynamic linker; a static program has none.
    pub(crate) interpreter: Option<OsString>,
    /// Built by the Go tool chain.
    pub(crate) is_go: bool,
}

/// Looks into a program file.
///
/// # Errors
///
/// Those of reading; a file with impossible ELF tables is an ELF program without interpreter.
pub(crate) fn inspect<R: Read + Seek>(file: &mut R) -> io::Result<Image> {
    let head = read_up_to(file, 0, SCRIPT_LINE as u64)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        return Ok(script_interpreter(line).map_or(Image::Other, Image::Script));
    }
    if !head.starts_with(&ELF_MAGIC) || head.len() < 52 {
        return Ok(Image::Other);
    }
    let layout = Layout::of(&head);
    let mut elf = Elf {
        is_64_little: layout.is_64 && layout.is_little,
        machine: layout.u16(&head, 18).unwrap_or(0),
        interpreter: None,
        is_go: false,
    };
    for segment in segments(file, &layout, &head)? {
        match segment.kind {
            PT_INTERP => {
                let mut path = read_up_to(file, segment.offset, segment.size)?;
                path.truncate(
                    path.iter()
                        .position(|&byte| byte == 0)
                        .unwrap_or(path.len()),
                );
                elf.interpreter = Some(OsString::from_vec(path));
            }
            PT_NOTE => {
                let notes = read_up_to(file, segment.offset, segment.size)?;
                elf.is_go |= has_go_note(&layout, &notes);
            }
            _ => {}
        }
    }
    Ok(Image::Elf(elf))
}

/// Word size and byte order of one file.
struct Layout {
    is_64: bool,
    is_little: bool,
}

impl Layout {
    fn of(head: &[u8]) -> Self {
        Layout {
            is_64: head.get(4) == Some(&CLASS_64),
            is_little: head.get(5) == Some(&LITTLE_ENDIAN),
        }
    }

    fn number(&self, bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
        let field = bytes.get(offset..offset.checked_add(size)?)?;
        let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if self.is_little {
            field.iter().rev().fold(0, join)
        } else {
            field.iter().fold(0, join)
        })
    }

    fn u16(&self, bytes: &[u8], offset: usize) -> Option<u16> {
        self.number(bytes, offset, 2).map(|value| value as u16)
    }

    fn u32(&self, bytes: &[u8], offset: usize) -> Option<u32> {
        self.number(bytes, offset, 4).map(|value| value as u32)
    }

    /// An address-sized field at `offset32` of the 32-bit form or `offset64` of the 64-bit form.
    fn word(&self, bytes: &[u8], offset32: usize, offset64: usize) -> Option<u64> {
        if self.is_64 {
            self.number(bytes, offset64, 8)
        } else {
            self.number(bytes, offset32, 4)
        }
    }
}

/// One entry of the program header table.
struct Segment {
    kind: u32,
    offset: u64,
    size: u64,
}

fn segments<R: Read + Seek>(
    file: &mut R,
    layout: &Layout,
    head: &[u8],
) -> io::Result<Vec<Segment>> {
    let (size_at, count_at) = if layout.is_64 { (54, 56) } else { (42, 44) };
    let table = layout.word(head, 28, 32).unwrap_or(0);
    let entry_size = usize::from(layout.u16(head, size_at).unwrap_or(0));
    let count = usize::from(layout.u16(head, count_at).unwrap_or(0));
    if entry_size == 0 {
        return Ok(Vec::new());
    }
    let bytes = read_up_to(file, table, (entry_size * count) as u64)?;
    Ok(bytes
        .chunks_exact(entry_size)
        .filter_map(|entry| {
            Some(Segment {
                kind: layout.u32(entry, 0)?,
                offset: layout.word(entry, 4, 8)?,
                size: layout.word(entry, 16, 32)?,
            })
        })
        .collect())
}

/// Walks a chain of notes: name size, description size, type, then both padded to four bytes.
fn has_go_note(layout: &Layout, notes: &[u8]) -> bool {
    let mut rest = notes;
    while let (Some(name), Some(description)) = (layout.u32(rest, 0), layout.u32(rest, 4)) {
        let name_end = 12 + name as usize;
        if rest.get(12..name_end) == Some(GO_NOTE) {
            return true;
        }
        let next = name_end.next_multiple_of(4) + (description as usize).next_multiple_of(4);
        match rest.get(next..) {
            Some(after) => rest = after,
            None => break,
        }
    }
    false
}

/// The interpreter of a `#!` line, without its argument.
fn script_interpreter(line: &[u8]) -> Option<OsString> {
    let end = line
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(line.len());
    line[..end]
        .split(|&byte| byte == b' ' || byte == b'\t' || byte == b'\r')
        .find(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
}

/// Reads at most `size` bytes at `offset`; fewer when the file ends before.
fn read_up_to<R: Read + Seek>(file: &mut R, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    // Offsets that the seek call cannot express lie beyond the end of any file.
    if offset > i64::MAX as u64 {
        return Ok(Vec::new());
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(size.min(MAX_PIECE)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "elf_tests.rs"]
mod tests;
