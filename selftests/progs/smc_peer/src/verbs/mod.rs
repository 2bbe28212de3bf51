// SPDX-License-Identifier: GPL-2.0

//! The verbs that this program needs, from libibverbs.

mod abi;
mod memory;

pub(crate) use memory::Memory;

use abi::*;
use libloading::Library;
use std::ffi::{c_int, CStr};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Work requests that either queue of a queue pair takes.
pub(crate) const QUEUE_DEPTH: u32 = 128;

/// Rights that memory can be registered with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Only this side uses it.
    Local,
    /// The peer may write.
    PeerWrites,
}

impl Rights {
    const fn bits(self) -> c_int {
        match self {
            Rights::Local => 1,
            Rights::PeerWrites => 1 | 2,
        }
    }
}

/// The functions of the library.
struct Calls {
    get_device_list: GetDeviceList,
    free_device_list: FreeDeviceList,
    get_device_name: GetDeviceName,
    open_device: OpenDevice,
    close_device: CloseDevice,
    alloc_pd: AllocPd,
    dealloc_pd: DeallocPd,
    reg_mr: RegMr,
    dereg_mr: DeregMr,
    create_cq: CreateCq,
    destroy_cq: DestroyCq,
    create_qp: CreateQp,
    destroy_qp: DestroyQp,
    modify_qp: ModifyQp,
    query_gid: QueryGid,
}

fn load() -> Result<Calls, String> {
    let text = |e: libloading::Error| {
        format!("libibverbs.so.1 cannot be used: {e}. Install rdma-core's libibverbs1.")
    };
    // SAFETY: the library's initialisers ask nothing of the program.
    let lib = unsafe { Library::new("libibverbs.so.1") }.map_err(text)?;
    // The functions stay in use until the program ends.
    let lib: &'static Library = Box::leak(Box::new(lib));
    macro_rules! find {
        ($name:literal) => {
            // SAFETY: the type is that of the function in the library's header.
            *unsafe { lib.get($name) }.map_err(text)?
        };
    }
    Ok(Calls {
        get_device_list: find!(b"ibv_get_device_list\0"),
        free_device_list: find!(b"ibv_free_device_list\0"),
        get_device_name: find!(b"ibv_get_device_name\0"),
        open_device: find!(b"ibv_open_device\0"),
        close_device: find!(b"ibv_close_device\0"),
        alloc_pd: find!(b"ibv_alloc_pd\0"),
        dealloc_pd: find!(b"ibv_dealloc_pd\0"),
        reg_mr: find!(b"ibv_reg_mr\0"),
        dereg_mr: find!(b"ibv_dereg_mr\0"),
        create_cq: find!(b"ibv_create_cq\0"),
        destroy_cq: find!(b"ibv_destroy_cq\0"),
        create_qp: find!(b"ibv_create_qp\0"),
        destroy_qp: find!(b"ibv_destroy_qp\0"),
        modify_qp: find!(b"ibv_modify_qp\0"),
        query_gid: find!(b"ibv_query_gid\0"),
    })
}

fn calls() -> Result<&'static Calls, String> {
    static CALLS: OnceLock<Result<Calls, String>> = OnceLock::new();
    CALLS.get_or_init(load).as_ref().map_err(Clone::clone)
}

/// What to connect a queue pair to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    pub(crate) gid: [u8; 16],
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    /// Code of the path MTU, 1 to 5.
    pub(crate) mtu: u8,
}

/// A work request that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) id: u64,
    /// 0 for success; see [`status_name`].
    pub(crate) status: i32,
    /// Length of a message that was received.
    pub(crate) len: usize,
}

/// What to do over a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Send,
    Write { addr: u64, rkey: u32 },
    Read { addr: u64, rkey: u32 },
}

/// A device, and one queue pair on it with its memory.
pub(crate) struct Rdma {
    calls: &'static Calls,
    context: *mut IbvContext,
    pd: *mut IbvPd,
    cq: *mut IbvCq,
    qp: *mut IbvQp,
    regions: Vec<*mut IbvMr>,
    gid_index: u8,
    /// Outlives the registrations, which `drop` ends.
    pub(crate) memory: Memory,
}

// SAFETY: all functions of the library may be called from any thread, and the pointers are used by
// the owner of this value only.
unsafe impl Send for Rdma {}

fn os_error(what: &str) -> String {
    format!("{what} failed: {}", std::io::Error::last_os_error())
}

/// A queue pair's errors are told as a return value.
fn check(code: c_int, what: &str) -> Result<(), String> {
    match code {
        0 => Ok(()),
        n => Err(format!(
            "{what} failed: {}",
            std::io::Error::from_raw_os_error(n.abs())
        )),
    }
}

impl Rdma {
    /// Opens the device that has `gid` and makes a queue pair in state INIT, with `len` bytes of
    /// memory that has no registration yet.
    pub(crate) fn open(gid: [u8; 16], len: usize) -> Result<Rdma, String> {
        let calls = calls()?;
        let (context, gid_index) = find_device(calls, gid)?;
        let mut rdma = Rdma {
            calls,
            context,
            pd: null_mut(),
            cq: null_mut(),
            qp: null_mut(),
            regions: Vec::new(),
            gid_index,
            memory: Memory::new(len)?,
        };
        // SAFETY: the context was opened and is closed by `drop` only; so for what follows.
        rdma.pd = unsafe { (calls.alloc_pd)(context) };
        if rdma.pd.is_null() {
            return Err(os_error("ibv_alloc_pd"));
        }
        // SAFETY: as above; a null channel says that there are no events.
        rdma.cq = unsafe {
            (calls.create_cq)(context, 4 * QUEUE_DEPTH as c_int, null_mut(), null_mut(), 0)
        };
        if rdma.cq.is_null() {
            return Err(os_error("ibv_create_cq"));
        }
        rdma.create_qp()?;
        Ok(rdma)
    }

    fn create_qp(&mut self) -> Result<(), String> {
        let mut attr = IbvQpInitAttr {
            qp_context: null_mut(),
            send_cq: self.cq,
            recv_cq: self.cq,
            srq: null_mut(),
            cap: IbvQpCap {
                max_send_wr: QUEUE_DEPTH,
                max_recv_wr: QUEUE_DEPTH,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            // A reliable connection.
            qp_type: 2,
            sq_sig_all: 1,
        };
        // SAFETY: domain and completion queue are alive, and the structure is the library's.
        self.qp = unsafe { (self.calls.create_qp)(self.pd, &raw mut attr) };
        if self.qp.is_null() {
            return Err(os_error("ibv_create_qp"));
        }
        let mut attr = IbvQpAttr {
            qp_state: 1,
            port_num: 1,
            // The peer may write, and nothing else.
            qp_access_flags: 2,
            ..IbvQpAttr::default()
        };
        // State, access flags, partition key, port.
        self.modify(&mut attr, 1 | 1 << 3 | 1 << 4 | 1 << 5)
    }

    fn modify(&self, attr: &mut IbvQpAttr, mask: c_int) -> Result<(), String> {
        // SAFETY: the queue pair is alive, and the structure is the library's.
        check(
            unsafe { (self.calls.modify_qp)(self.qp, attr, mask) },
            "ibv_modify_qp",
        )
    }

    /// Registers `len` bytes at `offset` of the memory; gives local and remote key.
    pub(crate) fn register(
        &mut self,
        offset: usize,
        len: usize,
        rights: Rights,
    ) -> Result<(u32, u32), String> {
        let at = self.memory.at(offset, len);
        // SAFETY: the range lies in memory that outlives the registration.
        let mr = unsafe { (self.calls.reg_mr)(self.pd, at.cast(), len, rights.bits()) };
        if mr.is_null() {
            return Err(os_error("ibv_reg_mr"));
        }
        self.regions.push(mr);
        // SAFETY: the library returned a valid structure, which lives until it is given back.
        let mr = unsafe { &*mr };
        Ok((mr.lkey, mr.rkey))
    }

    pub(crate) fn qpn(&self) -> u32 {
        // SAFETY: the queue pair is alive.
        unsafe { (*self.qp).qp_num }
    }

    /// Connects the queue pair, which sends from packet number `psn` on.
    pub(crate) fn connect(&self, remote: &Remote, psn: u32) -> Result<(), String> {
        let mut attr = IbvQpAttr {
            qp_state: 2,
            path_mtu: c_int::from(remote.mtu),
            dest_qp_num: remote.qpn,
            rq_psn: remote.psn,
            // Nobody may read, so the smallest number there is.
            max_dest_rd_atomic: 1,
            min_rnr_timer: 5,
            ah_attr: IbvAhAttr {
                dgid: IbvGid(remote.gid),
                sgid_index: self.gid_index,
                hop_limit: 64,
                is_global: 1,
                port_num: 1,
                ..IbvAhAttr::default()
            },
            ..IbvQpAttr::default()
        };
        // State, address, MTU, queue pair, packet number, limit of reads, timer.
        let mask = 1 | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15;
        self.modify(&mut attr, mask)?;
        let mut attr = IbvQpAttr {
            qp_state: 3,
            sq_psn: psn,
            // 4 us times 2^20: about four seconds, since an emulated machine is slow.
            timeout: 20,
            retry_cnt: 6,
            rnr_retry: 7,
            max_rd_atomic: 1,
            ..IbvQpAttr::default()
        };
        // State, time-out, both counts, packet number, limit of reads.
        self.modify(
            &mut attr,
            1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 16 | 1 << 13,
        )
    }

    /// Puts the queue pair into the error state: the peer gets no more acknowledgements.
    pub(crate) fn kill(&self) -> Result<(), String> {
        let mut attr = IbvQpAttr {
            qp_state: 6,
            ..IbvQpAttr::default()
        };
        self.modify(&mut attr, 1)
    }

    fn sge(&self, offset: usize, len: usize, lkey: u32) -> IbvSge {
        IbvSge {
            addr: self.memory.at(offset, len) as u64,
            length: len as u32,
            lkey,
        }
    }

    /// Posts a work request over `len` bytes at `offset`.
    pub(crate) fn post(
        &self,
        id: u64,
        op: Op,
        offset: usize,
        len: usize,
        lkey: u32,
    ) -> Result<(), String> {
        let mut sge = self.sge(offset, len, lkey);
        let (opcode, remote_addr, rkey) = match op {
            Op::Write { addr, rkey } => (0, addr, rkey),
            Op::Send => (2, 0, 0),
            Op::Read { addr, rkey } => (4, addr, rkey),
        };
        let mut wr = IbvSendWr {
            wr_id: id,
            next: null_mut(),
            sg_list: &raw mut sge,
            num_sge: c_int::from(len > 0),
            opcode,
            // Signalled.
            send_flags: 2,
            imm_data: 0,
            remote_addr,
            rkey,
            unused: [0; 9],
        };
        let mut bad = null_mut();
        // SAFETY: the queue pair is alive; the library copies the request before it returns.
        let code = unsafe { ((*(*self.qp).context).post_send)(self.qp, &raw mut wr, &raw mut bad) };
        check(code, "ibv_post_send")
    }

    /// Posts a receive of at most `len` bytes to `offset`.
    pub(crate) fn post_receive(
        &self,
        id: u64,
        offset: usize,
        len: usize,
        lkey: u32,
    ) -> Result<(), String> {
        let mut sge = self.sge(offset, len, lkey);
        let mut wr = IbvRecvWr {
            wr_id: id,
            next: null_mut(),
            sg_list: &raw mut sge,
            num_sge: 1,
        };
        let mut bad = null_mut();
        // SAFETY: the queue pair is alive; the library copies the request before it returns.
        let code = unsafe { ((*(*self.qp).context).post_recv)(self.qp, &raw mut wr, &raw mut bad) };
        check(code, "ibv_post_recv")
    }

    /// The next completion, if there is one.
    pub(crate) fn poll(&self) -> Result<Option<Done>, String> {
        let mut wc = IbvWc::default();
        // SAFETY: the queue is alive and there is room for the one completion asked for.
        match unsafe { ((*(*self.cq).context).poll_cq)(self.cq, 1, &raw mut wc) } {
            0 => Ok(None),
            1 => Ok(Some(Done {
                id: wc.wr_id,
                status: wc.status,
                len: wc.byte_len as usize,
            })),
            n => Err(format!("ibv_poll_cq failed with {n}")),
        }
    }
}

impl Drop for Rdma {
    fn drop(&mut self) {
        // SAFETY: each object was created by this value and is destroyed once, before what it
        // depends on. A failure leaves it to the end of the program.
        unsafe {
            if !self.qp.is_null() {
                (self.calls.destroy_qp)(self.qp);
            }
            for mr in self.regions.drain(..) {
                (self.calls.dereg_mr)(mr);
            }
            if !self.cq.is_null() {
                (self.calls.destroy_cq)(self.cq);
            }
            if !self.pd.is_null() {
                (self.calls.dealloc_pd)(self.pd);
            }
            (self.calls.close_device)(self.context);
        }
    }
}

/// Opens the device whose first port has `gid`; gives the place of the GID in its table.
fn find_device(calls: &Calls, gid: [u8; 16]) -> Result<(*mut IbvContext, u8), String> {
    let mut count = 0;
    // SAFETY: the library fills in the count and returns an array of that many devices.
    let list = unsafe { (calls.get_device_list)(&raw mut count) };
    if list.is_null() {
        return Err(os_error("ibv_get_device_list"));
    }
    let mut names = Vec::new();
    let mut found = None;
    for n in 0..count as usize {
        // SAFETY: the array has `count` entries, valid until it is freed.
        let device = unsafe { *list.add(n) };
        // SAFETY: the name is a string inside of the device.
        let name = unsafe { CStr::from_ptr((calls.get_device_name)(device)) };
        names.push(name.to_string_lossy().into_owned());
        // SAFETY: the device is one of the list.
        let context = unsafe { (calls.open_device)(device) };
        if context.is_null() {
            continue;
        }
        let mut own = IbvGid::default();
        // SAFETY: the context is open, and there is room for the GID.
        let index = (0..16u8).find(|&index| unsafe {
            (calls.query_gid)(context, 1, c_int::from(index), &raw mut own) == 0 && own.0 == gid
        });
        match index {
            Some(index) => {
                found = Some((context, index));
                break;
            }
            // SAFETY: nothing was made with the context.
            None => unsafe {
                (calls.close_device)(context);
            },
        }
    }
    // SAFETY: the list is not used any more; open contexts do not need it.
    unsafe { (calls.free_device_list)(list) };
    found.ok_or_else(|| {
        format!(
            "none of the RDMA devices {names:?} has the address {}: give --own",
            std::net::Ipv6Addr::from(gid)
        )
    })
}

/// A completion status in words.
pub(crate) fn status_name(status: i32) -> String {
    match status {
        0 => "success",
        4 => "local protection error",
        5 => "flushed",
        9 => "remote invalid request",
        10 => "remote access error",
        11 => "remote operation error",
        12 => "no acknowledgement",
        13 => "receiver never ready",
        n => return format!("completion status {n}"),
    }
    .to_owned()
}
