// SPDX-License-Identifier: GPL-2.0

//! BPF programs that add a TCP option or put connections into a map of sockets, and the system calls
//! that load and attach them.
//!
//! Numbers are those of `linux/bpf.h`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const PROG_TYPE_SOCK_OPS: u32 = 13;
const ATTACH_SOCK_OPS: u32 = 3;
const MAP_TYPE_SOCKHASH: u32 = 18;
const CMD_MAP_CREATE: libc::c_long = 0;
const CMD_PROG_LOAD: libc::c_long = 5;
const CMD_PROG_ATTACH: libc::c_long = 8;

/// What the program is called for.
const TCP_CONNECT: i32 = 3;
const PASSIVE_ESTABLISHED: i32 = 5;
const TCP_LISTEN: i32 = 11;
const HDR_OPT_LEN: i32 = 14;
const WRITE_HDR_OPT: i32 = 15;
/// Asks to be called for the last two.
const WRITE_HDR_OPT_FLAG: i32 = 1 << 6;

/// Helper functions.
const CB_FLAGS_SET: i32 = 59;
const SOCK_HASH_UPDATE: i32 = 70;
const STORE_HDR_OPT: i32 = 143;
const RESERVE_HDR_OPT: i32 = 144;

/// Kind of TCP options for experiments (RFC 4727), and an identifier nobody uses.
const EXPERIMENT: u8 = 253;
const IDENTIFIER: [u8; 2] = [0x54, 0x43];

/// One instruction, as the kernel takes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Insn {
    code: u8,
    registers: u8,
    offset: i16,
    imm: i32,
}

const fn insn(code: u8, dst: u8, src: u8, offset: i16, imm: i32) -> Insn {
    Insn {
        code,
        registers: dst | src << 4,
        offset,
        imm,
    }
}

const fn mov(dst: u8, imm: i32) -> Insn {
    insn(0xb7, dst, 0, 0, imm)
}

const fn copy(dst: u8, src: u8) -> Insn {
    insn(0xbf, dst, src, 0, 0)
}

const fn jump_if_equal(register: u8, imm: i32, skip: i16) -> Insn {
    insn(0x15, register, 0, skip, imm)
}

const fn call(helper: i32) -> Insn {
    insn(0x85, 0, 0, 0, helper)
}

/// Stores four bytes on the stack, `below` bytes under its top.
const fn store(below: i16, bytes: [u8; 4]) -> Insn {
    insn(0x62, 10, 0, -below, i32::from_ne_bytes(bytes))
}

const EXIT: [Insn; 2] = [mov(0, 1), insn(0x95, 0, 0, 0, 0)];

/// The program: in every segment an option of so many bytes, from 4 to 20.
pub(crate) fn option_writer(bytes: u8) -> Vec<Insn> {
    let len = i32::from(bytes);
    let ask = [copy(1, 6), mov(2, WRITE_HDR_OPT_FLAG), call(CB_FLAGS_SET)];
    let reserve = [copy(1, 6), mov(2, len), mov(3, 0), call(RESERVE_HDR_OPT)];
    let [a, b] = IDENTIFIER;
    let write = [
        store(24, [EXPERIMENT, bytes, a, b]),
        store(20, [0; 4]),
        store(16, [0; 4]),
        store(12, [0; 4]),
        store(8, [0; 4]),
        copy(1, 6),
        copy(2, 10),
        insn(0x07, 2, 0, 0, -24),
        mov(3, len),
        mov(4, 0),
        call(STORE_HDR_OPT),
    ];
    let [asks, reserves, writes] = [&ask[..], &reserve, &write].map(|part| [part, &EXIT].concat());
    let (ask_len, reserve_len) = (asks.len() as i16, reserves.len() as i16);
    // The first field of the context says what the program is called for.
    let mut program = vec![
        copy(6, 1),
        insn(0x61, 2, 6, 0, 0),
        jump_if_equal(2, TCP_CONNECT, 5),
        jump_if_equal(2, TCP_LISTEN, 4),
        jump_if_equal(2, HDR_OPT_LEN, 3 + ask_len),
        jump_if_equal(2, WRITE_HDR_OPT, 2 + ask_len + reserve_len),
    ];
    program.extend(EXIT);
    program.extend([asks, reserves, writes].concat());
    program
}

/// The program: puts every connection that a listener takes into the map, under the number of the
/// peer's port.
pub(crate) fn map_filler(map: BorrowedFd<'_>) -> Vec<Insn> {
    const PEER_PORT: i16 = 64;
    let update = [
        insn(0x61, 2, 6, PEER_PORT, 0),
        insn(0x63, 10, 2, -4, 0),
        copy(1, 6),
        // The file descriptor of a map, in two instructions.
        insn(0x18, 2, 1, 0, map.as_raw_fd()),
        insn(0, 0, 0, 0, 0),
        copy(3, 10),
        insn(0x07, 3, 0, 0, -4),
        mov(4, 0),
        call(SOCK_HASH_UPDATE),
    ];
    let mut program = vec![
        copy(6, 1),
        insn(0x61, 2, 6, 0, 0),
        jump_if_equal(2, PASSIVE_ESTABLISHED, EXIT.len() as i16),
    ];
    program.extend(EXIT);
    program.extend(update);
    program.extend(EXIT);
    program
}

/// `union bpf_attr` as far as it is used for making maps.
#[repr(C)]
struct MapAttr {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

/// Makes a map of sockets.
///
/// # Errors
///
/// Those of `bpf(2)`.
pub(crate) fn socket_map() -> io::Result<OwnedFd> {
    let attr = MapAttr {
        kind: MAP_TYPE_SOCKHASH,
        key_size: 4,
        value_size: 4,
        max_entries: 4096,
        flags: 0,
    };
    let fd = bpf(CMD_MAP_CREATE, &attr)?;
    // SAFETY: The call returned a new file descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// `union bpf_attr` as far as it is used for loading.
#[repr(C)]
struct LoadAttr {
    kind: u32,
    count: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    flags: u32,
}

/// `union bpf_attr` as far as it is used for attaching.
#[repr(C)]
struct AttachAttr {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

fn bpf<T>(command: libc::c_long, attr: &T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads the attributes, which are valid for their length, and what they
    // point to lives in the callers until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attr),
            size_of::<T>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Loads a program.
///
/// # Errors
///
/// Those of `bpf(2)`; a refusal by the verifier has its words.
pub(crate) fn load(program: &[Insn]) -> io::Result<OwnedFd> {
    let mut log = vec![0u8; 65_536];
    let attr = LoadAttr {
        kind: PROG_TYPE_SOCK_OPS,
        count: program.len() as u32,
        insns: program.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        log_level: 1,
        log_size: log.len() as u32,
        log_buf: log.as_mut_ptr() as u64,
        kern_version: 0,
        flags: 0,
    };
    let fd = bpf(CMD_PROG_LOAD, &attr).map_err(|e| {
        let words: Vec<u8> = log.iter().copied().take_while(|b| *b != 0).collect();
        io::Error::new(e.kind(), format!("{e} {}", String::from_utf8_lossy(&words)))
    })?;
    // SAFETY: the call returned a new file descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Lets a program run for the sockets of a control group.
///
/// # Errors
///
/// Those of `bpf(2)`.
pub(crate) fn attach(group: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let attr = AttachAttr {
        target: group.as_raw_fd() as u32,
        program: program.as_raw_fd() as u32,
        kind: ATTACH_SOCK_OPS,
        flags: 0,
    };
    bpf(CMD_PROG_ATTACH, &attr).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_the_parts() {
        let program = option_writer(20);
        let targets: Vec<usize> = program
            .iter()
            .enumerate()
            .filter(|(_, i)| i.code == 0x15)
            .map(|(at, i)| at + 1 + i.offset as usize)
            .collect();
        assert_eq!(targets.len(), 4);
        assert_eq!(targets[0], targets[1]);
        // Each part begins behind the end of another one.
        for target in &targets {
            assert_eq!(program[target - 1].code, 0x95);
        }
        let calls = |from: usize| program[from..].iter().find(|i| i.code == 0x85).unwrap().imm;
        assert_eq!(calls(targets[0]), CB_FLAGS_SET);
        assert_eq!(calls(targets[2]), RESERVE_HDR_OPT);
        assert_eq!(calls(targets[3]), STORE_HDR_OPT);
    }
}
