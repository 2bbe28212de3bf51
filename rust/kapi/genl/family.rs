// SPDX-License-Identifier: GPL-2.0

//! Families, requests and dumps.

use super::{
    attr::{
        Attrs,
        Policy, //
    },
    events::EventSlot,
    reply::Builder, //
};
use crate::{
    net::ns::Net,
    sys, //
};
use core::marker::PhantomData;
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    page::PAGE_SIZE,
    prelude::*,
    types::Opaque, //
};

/// How many numbers a dump can keep between its calls.
pub const DUMP_COOKIES: usize = 6;

/// A generic netlink family. It is present in all network namespaces.
pub trait Family: 'static {
    /// Name, at most 15 bytes.
    const NAME: &'static CStr;
    /// Version.
    const VERSION: u8;
    /// The first command that refuses requests with reserved header bits set; commands below ignore
    /// the bits, as older kernels did.
    const STRICT_FROM: u8 = 0;
    /// Whether attributes are checked as old families do: those that are unknown or too long are
    /// ignored, and dumps get no attributes.
    const LENIENT: bool = false;
    /// The commands.
    const OPERATIONS: &'static [Operation];
    /// Groups of those who listen to events, at most 15 bytes each.
    const GROUPS: &'static [&'static CStr] = &[];

    /// Where the family is found to send events, if it has any.
    fn events() -> Option<&'static EventSlot> {
        None
    }
}

/// One command of a family.
pub struct Operation {
    /// Its number.
    pub cmd: u8,
    /// Whether the caller must have `CAP_NET_ADMIN` in the initial user namespace.
    pub admin: bool,
    /// The attributes it takes. Others are refused or ignored, see [`Family::LENIENT`]. With an
    /// empty list nothing is checked.
    pub policy: &'static [Policy],
    /// Does the command. May sleep.
    pub doit: Option<fn(&Info<'_>) -> Result>,
    /// Lists things. May sleep. Called until it returns success without `EMSGSIZE`.
    pub dump: Option<fn(&mut Dump<'_>) -> Result>,
}

/// A request.
///
/// # Invariants
///
/// `info` is that of a command being done for `'a`.
pub struct Info<'a> {
    info: *mut sys::genl_info,
    attrs: Attrs<'a>,
}

impl<'a> Info<'a> {
    /// The namespace the request came from.
    pub fn net(&self) -> &Net {
        // SAFETY: The sender's socket holds the namespace.
        unsafe { Net::from_raw(sys::smc_rs_helper_genl_info_net(self.info)) }
    }

    /// The attributes.
    pub fn attrs(&self) -> Attrs<'a> {
        self.attrs
    }

    /// Answers with a message of command `cmd`.
    ///
    /// # Errors
    ///
    /// Those of `fill`, `ENOMEM`, or that the sender is gone.
    pub fn reply(&self, cmd: u8, fill: impl FnOnce(&mut Builder) -> Result) -> Result {
        // SAFETY: No requirements.
        let skb = unsafe { sys::smc_rs_helper_genlmsg_new(PAGE_SIZE) };
        if skb.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: `info` is valid by the type invariant.
        let (portid, seq, family) = unsafe {
            (
                (*self.info).snd_portid,
                (*self.info).snd_seq,
                (*self.info).family,
            )
        };
        // SAFETY: The message is new, the family is registered.
        let result = unsafe { message(skb, portid, seq, family, 0, cmd, fill) };
        if let Err(error) = result {
            // SAFETY: The message is ours.
            unsafe { sys::smc_rs_helper_nlmsg_free(skb) };
            return Err(error);
        }
        // SAFETY: The message is complete and passes on; `info` is valid.
        to_result(unsafe { sys::smc_rs_helper_genlmsg_reply(skb, self.info) })
    }

    /// Answers with the items that `fill` adds and the end of a list behind them.
    ///
    /// # Errors
    ///
    /// Those of `fill`, `ENOMEM`, or that the sender is gone.
    pub fn reply_list(&self, fill: impl FnOnce(&mut ReplyList) -> Result) -> Result {
        // SAFETY: No requirements.
        let skb = unsafe { sys::smc_rs_helper_genlmsg_new(4 * PAGE_SIZE) };
        if skb.is_null() {
            return Err(ENOMEM);
        }
        // INVARIANT: The command is being done, the buffer is new.
        let mut list = ReplyList {
            skb,
            info: self.info,
        };
        let result = fill(&mut list).and_then(|()| {
            // SAFETY: The buffer is ours and the request valid.
            to_result(unsafe { sys::smc_rs_helper_genl_list_end(skb, self.info) })
        });
        if let Err(error) = result {
            // SAFETY: The message is ours.
            unsafe { sys::smc_rs_helper_nlmsg_free(skb) };
            return Err(error);
        }
        // SAFETY: The message is complete and passes on; `info` is valid.
        to_result(unsafe { sys::smc_rs_helper_genlmsg_reply(skb, self.info) })
    }
}

/// A list in a single answer.
///
/// # Invariants
///
/// `skb` is being filled for the command of `info`.
pub struct ReplyList {
    skb: *mut sys::sk_buff,
    info: *mut sys::genl_info,
}

impl ReplyList {
    /// Adds one item.
    ///
    /// # Errors
    ///
    /// Those of `fill`, `EMSGSIZE` if there is no room.
    pub fn item(&mut self, cmd: u8, fill: impl FnOnce(&mut Builder) -> Result) -> Result {
        // SAFETY: The request is valid by the type invariant.
        let (portid, seq, family) = unsafe {
            let info = &*self.info;
            (info.snd_portid, info.snd_seq, info.family)
        };
        // SAFETY: The buffer is ours, the family is registered.
        unsafe { message(self.skb, portid, seq, family, sys::NLM_F_MULTI, cmd, fill) }
    }
}

/// Adds the one message of an event to `skb`.
///
/// # Safety
///
/// As [`message`].
pub(super) unsafe fn event_message(
    skb: *mut sys::sk_buff,
    family: *const sys::genl_family,
    cmd: u8,
    fill: impl FnOnce(&mut Builder) -> Result,
) -> Result {
    // SAFETY: As promised by the caller.
    unsafe { message(skb, 0, 0, family, 0, cmd, fill) }
}

/// Adds one message to `skb`.
///
/// # Safety
///
/// `skb` is a netlink buffer that nobody else uses, `family` is registered.
unsafe fn message(
    skb: *mut sys::sk_buff,
    portid: u32,
    seq: u32,
    family: *const sys::genl_family,
    flags: u32,
    cmd: u8,
    fill: impl FnOnce(&mut Builder) -> Result,
) -> Result {
    // SAFETY: As promised by the caller.
    let header = unsafe { sys::genlmsg_put(skb, portid, seq, family, flags as c_int, cmd) };
    if header.is_null() {
        return Err(EMSGSIZE);
    }
    // SAFETY: The header was just begun.
    let result = fill(&mut unsafe { Builder::from_raw(skb) });
    // SAFETY: As above.
    unsafe {
        match result {
            Ok(()) => sys::smc_rs_helper_genlmsg_end(skb, header),
            Err(_) => sys::smc_rs_helper_genlmsg_cancel(skb, header),
        }
    }
    result
}

/// A list being sent, possibly in several parts.
///
/// # Invariants
///
/// The pointers are those of a dump being done for `'a`.
pub struct Dump<'a> {
    skb: *mut sys::sk_buff,
    cb: *mut sys::netlink_callback,
    attrs: Attrs<'a>,
}

impl<'a> Dump<'a> {
    fn info(&self) -> *const sys::genl_info {
        // SAFETY: The callback is valid by the type invariant.
        unsafe { sys::smc_rs_helper_genl_info_dump(self.cb) }
    }

    /// The namespace the request came from.
    pub fn net(&self) -> &Net {
        // SAFETY: The sender's socket holds the namespace.
        unsafe { Net::from_raw(sys::smc_rs_helper_genl_info_net(self.info())) }
    }

    /// The attributes of the request.
    pub fn attrs(&self) -> Attrs<'a> {
        self.attrs
    }

    /// What was kept from the call before, 0 at first: where to go on. `index` is below
    /// [`DUMP_COOKIES`].
    pub fn cookie(&self, index: usize) -> u64 {
        // SAFETY: The callback is valid by the type invariant.
        let args = unsafe { &(*self.cb).__bindgen_anon_1.args };
        args.get(index).map_or(0, |&value| value as u64)
    }

    /// Keeps a number for the next call.
    pub fn set_cookie(&mut self, index: usize, value: u64) {
        // SAFETY: The callback is valid by the type invariant and used by this call only.
        let args = unsafe { &mut (*self.cb).__bindgen_anon_1.args };
        if let Some(slot) = args.get_mut(index) {
            *slot = value as c_long;
        }
    }

    /// Adds one item. If this fails with `EMSGSIZE`, the dump returns that error and is called
    /// again, and then starts with the same item.
    ///
    /// # Errors
    ///
    /// Those of `fill`, `EMSGSIZE` if this part of the list is full.
    pub fn item(&mut self, cmd: u8, fill: impl FnOnce(&mut Builder) -> Result) -> Result {
        let info = self.info();
        // SAFETY: The request is valid by the type invariant.
        let (portid, seq, family) =
            unsafe { ((*info).snd_portid, (*info).snd_seq, (*info).family) };
        // SAFETY: The buffer belongs to the dump, the family is registered.
        unsafe { message(self.skb, portid, seq, family, sys::NLM_F_MULTI, cmd, fill) }
    }
}

/// Keeps a generic netlink family registered.
///
/// # Invariants
///
/// `family` is registered and points into `ops` and `policies`.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct FamilyRegistration<F: Family> {
    #[pin]
    family: Opaque<sys::genl_family>,
    ops: KVec<sys::genl_ops>,
    policies: KVec<KVec<sys::nla_policy>>,
    groups: KVec<sys::genl_multicast_group>,
    _type: PhantomData<F>,
}

// SAFETY: The registration may be dropped on any thread.
unsafe impl<F: Family> Send for FamilyRegistration<F> {}
// SAFETY: There are no methods that take `&self`.
unsafe impl<F: Family> Sync for FamilyRegistration<F> {}

impl<F: Family> FamilyRegistration<F> {
    /// Registers the family.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is a family of that name, `ENOMEM`, `EINVAL` for a table that the kernel
    /// refuses.
    pub fn new(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            policies: F::OPERATIONS.iter().try_fold(KVec::new(), |mut all, operation| {
                all.push(policy_table(operation)?, GFP_KERNEL)?;
                Ok::<_, Error>(all)
            })?,
            // SAFETY: `this` points to the value being made, whose `policies` are done.
            ops: op_table::<F>(unsafe { &(*this.as_ptr()).policies })?,
            groups: group_table::<F>()?,
            family <- Opaque::try_ffi_init(move |family: *mut sys::genl_family| {
                // SAFETY: As above, for `ops`.
                let (ops, groups) = unsafe { (&(*this.as_ptr()).ops, &(*this.as_ptr()).groups) };
                let mut value = sys::genl_family {
                    version: c_uint::from(F::VERSION),
                    ops: ops.as_ptr(),
                    n_ops: ops.len() as u8,
                    mcgrps: groups.as_ptr(),
                    n_mcgrps: groups.len() as u8,
                    resv_start_op: F::STRICT_FROM,
                    module: module.as_ptr(),
                    ..pin_init::zeroed()
                };
                for (to, from) in value.name.iter_mut().zip(F::NAME.to_bytes().iter().take(15)) {
                    *to = *from;
                }
                // SAFETY: `family` is valid for writing.
                unsafe {
                    family.write(value);
                    sys::smc_rs_helper_genl_family_flags(family);
                }
                // SAFETY: `family` and what it points to stay until `drop` unregisters it.
                to_result(unsafe { sys::genl_register_family(family) })?;
                if let Some(events) = F::events() {
                    // SAFETY: `drop` clears the slot and waits before it unregisters the family.
                    unsafe { events.set(family) };
                }
                Ok::<(), Error>(())
            }),
            _type: PhantomData,
        })
    }
}

#[pinned_drop]
impl<F: Family> PinnedDrop for FamilyRegistration<F> {
    fn drop(self: Pin<&mut Self>) {
        if let Some(events) = F::events() {
            events.clear();
            // SAFETY: May sleep here.
            unsafe { sys::synchronize_net() };
        }
        // SAFETY: By the type invariant the family is registered. This waits for running commands.
        unsafe { sys::genl_unregister_family(self.family.get()) };
    }
}

/// The highest attribute number a command takes.
fn max_attr(operation: &Operation) -> u16 {
    operation.policy.iter().map(|p| p.attr).max().unwrap_or(0)
}

/// The C table of a command's attributes, indexed by attribute number.
fn policy_table(operation: &Operation) -> Result<KVec<sys::nla_policy>> {
    let mut table = KVec::new();
    for attr in 0..=max_attr(operation) {
        let known = operation.policy.iter().find(|policy| policy.attr == attr);
        let entry = known.map_or_else(pin_init::zeroed, |policy| policy.to_raw());
        table.push(entry, GFP_KERNEL)?;
    }
    Ok(table)
}

/// What the C table has for [`Operation::doit`] and [`Operation::dump`].
type DoIt = unsafe extern "C" fn(*mut sys::sk_buff, *mut sys::genl_info) -> c_int;
type DumpIt = unsafe extern "C" fn(*mut sys::sk_buff, *mut sys::netlink_callback) -> c_int;

/// The C table of commands.
fn op_table<F: Family>(policies: &KVec<KVec<sys::nla_policy>>) -> Result<KVec<sys::genl_ops>> {
    let mut table = KVec::new();
    for (operation, policy) in F::OPERATIONS.iter().zip(policies.iter()) {
        let lenient = if F::LENIENT {
            sys::genl_validate_flags_GENL_DONT_VALIDATE_STRICT
                | sys::genl_validate_flags_GENL_DONT_VALIDATE_DUMP
        } else {
            0
        };
        let entry = sys::genl_ops {
            cmd: operation.cmd,
            flags: if operation.admin {
                sys::GENL_ADMIN_PERM as u8
            } else {
                0
            },
            validate: lenient as u8,
            policy: policy.as_ptr(),
            maxattr: c_uint::from(max_attr(operation)),
            doit: operation.doit.map(|_| -> DoIt { doit::<F> }),
            dumpit: operation.dump.map(|_| -> DumpIt { dump::<F> }),
            ..pin_init::zeroed()
        };
        table.push(entry, GFP_KERNEL)?;
    }
    Ok(table)
}

/// The C table of groups.
fn group_table<F: Family>() -> Result<KVec<sys::genl_multicast_group>> {
    let mut table = KVec::new();
    for name in F::GROUPS {
        let mut group: sys::genl_multicast_group = pin_init::zeroed();
        for (to, from) in group.name.iter_mut().zip(name.to_bytes().iter().take(15)) {
            *to = *from;
        }
        table.push(group, GFP_KERNEL)?;
    }
    Ok(table)
}

/// The command of a request.
///
/// # Safety
///
/// `info` is that of a command of `F` being done.
unsafe fn operation<F: Family>(info: *const sys::genl_info) -> Result<&'static Operation> {
    // SAFETY: As promised by the caller.
    let cmd = unsafe { (*(*info).genlhdr).cmd };
    F::OPERATIONS
        .iter()
        .find(|operation| operation.cmd == cmd)
        .ok_or(EOPNOTSUPP)
}

/// # Safety
///
/// Called by generic netlink only.
unsafe extern "C" fn doit<F: Family>(_skb: *mut sys::sk_buff, info: *mut sys::genl_info) -> c_int {
    from_result(|| {
        // SAFETY: The command is being done.
        let operation = unsafe { operation::<F>(info)? };
        let doit = operation.doit.ok_or(EOPNOTSUPP)?;
        // SAFETY: Generic netlink parsed as many attributes as the operation's table says.
        let attrs = unsafe { Attrs::from_raw((*info).attrs, max_attr(operation)) };
        // INVARIANT: The request is being done.
        doit(&Info { info, attrs })?;
        Ok(0)
    })
}

/// # Safety
///
/// Called by generic netlink only.
unsafe extern "C" fn dump<F: Family>(
    skb: *mut sys::sk_buff,
    cb: *mut sys::netlink_callback,
) -> c_int {
    from_result(|| {
        // SAFETY: The dump is being done.
        let info = unsafe { sys::smc_rs_helper_genl_info_dump(cb) };
        // SAFETY: As above.
        let operation = unsafe { operation::<F>(info)? };
        let dump = operation.dump.ok_or(EOPNOTSUPP)?;
        // SAFETY: Generic netlink parsed as many attributes as the operation's table says.
        let attrs = unsafe { Attrs::from_raw((*info).attrs, max_attr(operation)) };
        // INVARIANT: The dump is being done.
        dump(&mut Dump { skb, cb, attrs })?;
        Ok(0)
    })
}
