// SPDX-License-Identifier: GPL-2.0

//! Tests with program files built byte by byte.

use std::io::Cursor;

use super::*;

/// A 64-bit little-endian ELF header followed by `segments` (type, contents).
fn elf64(segments: &[(u32, &[u8])]) -> Vec<u8> {
    let mut file = vec![0u8; 64];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[16..18].copy_from_slice(&3u16.to_le_bytes());
    file[18..20].copy_from_slice(&62u16.to_le_bytes());
    file[32..40].copy_from_slice(&64u64.to_le_bytes());
    file[54..56].copy_from_slice(&56u16.to_le_bytes());
    file[56..58].copy_from_slice(&(segments.len() as u16).to_le_bytes());
    let mut data_at = 64 + 56 * segments.len() as u64;
    for (kind, data) in segments {
        let mut entry = [0u8; 56];
        entry[..4].copy_from_slice(&kind.to_le_bytes());
        entry[8..16].copy_from_slice(&data_at.to_le_bytes());
        entry[32..40].copy_from_slice(&(data.len() as u64).to_le_bytes());
        file.extend_from_slice(&entry);
        data_at += data.len() as u64;
    }
    for (_, data) in segments {
        file.extend_from_slice(data);
    }
    file
}

/// A 32-bit header with one segment, in the byte order given by `big`.
fn elf32(big: bool, kind: u32, data: &[u8]) -> Vec<u8> {
    let half = |value: u16| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let word = |value: u32| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let mut file = vec![0u8; 52];
    file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 1, if big { 2 } else { 1 }]);
    file[18..20].copy_from_slice(&half(3));
    file[28..32].copy_from_slice(&word(52));
    file[42..44].copy_from_slice(&half(32));
    file[44..46].copy_from_slice(&half(1));
    let mut entry = [0u8; 32];
    entry[..4].copy_from_slice(&word(kind));
    entry[4..8].copy_from_slice(&word(84));
    entry[16..20].copy_from_slice(&word(data.len() as u32));
    file.extend_from_slice(&entry);
    file.extend_from_slice(data);
    file
}

/// One note with the given owner name and description.
fn note(name: &[u8], description: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(description.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&4u32.to_le_bytes());
    for part in [name, description] {
        bytes.extend_from_slice(part);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

fn look(bytes: Vec<u8>) -> Image {
    inspect(&mut Cursor::new(bytes)).expect("reading from memory cannot fail")
}

fn look_elf(bytes: Vec<u8>) -> Elf {
    match look(bytes) {
        Image::Elf(elf) => elf,
        other => panic!("taken for {other:?}"),
    }
}

#[test]
fn a_dynamic_program_names_its_linker() {
    let elf = look_elf(elf64(&[
        (1, b"code"),
        (PT_INTERP, b"/lib64/ld-linux-x86-64.so.2\0"),
    ]));
    assert_eq!(elf.interpreter, Some("/lib64/ld-linux-x86-64.so.2".into()));
    assert_eq!(
        (elf.is_64_little, elf.machine, elf.is_go),
        (true, 62, false)
    );
}

#[test]
fn a_static_program_has_no_linker() {
    assert_eq!(look_elf(elf64(&[(1, b"code")])).interpreter, None);
    // A static position-independent program has a dynamic segment (2), but no linker either.
    assert_eq!(
        look_elf(elf64(&[(1, b"code"), (2, b"dyn")])).interpreter,
        None
    );
    assert_eq!(look_elf(elf64(&[])).interpreter, None);
}

#[test]
fn go_programs_are_known_by_their_note() {
    let mut notes = note(b"GNU\0", b"12345");
    notes.extend(note(b"Go\0\0", b"build id"));
    assert!(look_elf(elf64(&[(PT_NOTE, &notes)])).is_go);
    assert!(!look_elf(elf64(&[(PT_NOTE, &note(b"GNU\0", b"Go\0\0"))])).is_go);
}

#[test]
fn other_word_sizes_and_byte_orders_are_read() {
    for big in [false, true] {
        let elf = look_elf(elf32(big, PT_INTERP, b"/lib/ld.so\0"));
        assert_eq!(elf.interpreter, Some("/lib/ld.so".into()));
        assert_eq!((elf.is_64_little, elf.machine), (false, 3));
    }
}

#[test]
fn scripts_name_their_interpreter() {
    for (text, interpreter) in [
        (&b"#!/bin/sh\necho hi\n"[..], "/bin/sh"),
        (b"#! /usr/bin/env python3\n", "/usr/bin/env"),
        (b"#!\t/bin/awk -f", "/bin/awk"),
        (b"#!/bin/sh\r\n", "/bin/sh"),
    ] {
        assert_eq!(look(text.to_vec()), Image::Script(interpreter.into()));
    }
    assert_eq!(look(b"#!\n".to_vec()), Image::Other);
    assert_eq!(look(b"#!   ".to_vec()), Image::Other);
}

#[test]
fn short_and_foreign_files_are_left_to_the_kernel() {
    for bytes in [&b""[..], b"#", b"\x7fELF", b"plain text", b"MZ\x90\0"] {
        assert_eq!(look(bytes.to_vec()), Image::Other, "{bytes:?}");
    }
}

#[test]
fn impossible_tables_are_survived() {
    let good = elf64(&[
        (PT_INTERP, b"/lib/ld.so\0"),
        (PT_NOTE, &note(b"Go\0\0", b"x")),
    ]);
    for length in 0..good.len() {
        look(good[..length].to_vec());
    }
    for position in 0..good.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[position] = value;
            look(bad);
        }
    }
    let mut far = good.clone();
    far[32..40].fill(0xff);
    assert_eq!(look_elf(far).interpreter, None);
    let mut endless = good;
    endless[56..58].fill(0xff);
    look(endless);
}
