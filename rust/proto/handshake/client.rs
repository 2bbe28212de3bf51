// SPDX-License-Identifier: GPL-2.0

//! The client's side of the handshake: Proposal, then Accept, then Confirm.

use super::select::check_limits;
use super::{extension, Caps, Outcome, UNNEGOTIATED};
use crate::ids::{
    Eid, EidList, Gid, GidList, HostName, Ipv6PrefixList, Mac, PathMtu, PeerId, Release, Version,
};
use crate::reason::DeclineReason;
use crate::wire::clc::{
    Accept, Confirm, Endpoint, FirstContactExt, IsmList, Message, PathType, Proposal, RdmaEndpoint,
    V1Offer, V21Limits, V2Fields, V2Offer,
};

/// Start of the client's handshake.
#[derive(Clone, Copy, Debug)]
pub struct Client;

impl Client {
    /// Builds the Proposal from what this host can do.
    ///
    /// A version is offered exactly when it will be taken: version 1 needs an IP subnet or prefix,
    /// version 2 an enterprise ID.
    ///
    /// # Errors
    ///
    /// The reason for staying on TCP when nothing can be offered; nothing is sent then.
    pub fn start(caps: &Caps<'_>) -> Result<(AwaitAccept, Proposal), DeclineReason> {
        // Cheap questions first: the offers are large, and are built where they are returned.
        let (v1, v2) = (offers_v1(caps), offers_v2(caps));
        if !v1 && !v2 {
            return Err(DeclineReason::NOSMCRDEV);
        }
        Ok((
            AwaitAccept {
                v1,
                eids: offered_eids(caps),
                offered: caps.limits(),
                release: caps.v2.as_ref().map_or(Release::HIGHEST, |own| own.release),
                host: caps.host,
                mtu: caps.mtu,
            },
            Proposal {
                version: Version::HIGHEST.number(),
                typev1: PathType::of(v1, false),
                typev2: PathType::of(v2, false),
                peer_id: caps.peer_id,
                v1: v1_offer(caps),
                smcd_v1: None,
                v2: v2_offer(caps),
            },
        ))
    }
}

fn offers_v1(caps: &Caps<'_>) -> bool {
    caps.v1
        .as_ref()
        .is_some_and(|own| !own.subnets.is_empty() || !own.v6.is_empty())
}

fn offers_v2(caps: &Caps<'_>) -> bool {
    caps.v2.as_ref().is_some_and(|own| !own.eids.is_empty())
}

// Inlined, each of the following would take stack space in the caller for its result.

#[inline(never)]
fn v1_offer(caps: &Caps<'_>) -> Option<V1Offer> {
    let own = caps.v1.as_ref().filter(|_| offers_v1(caps))?;
    let mut v6 = Ipv6PrefixList::EMPTY;
    // As many as there is room for.
    let _ = v6.extend_from_slice(own.v6);
    Some(V1Offer {
        gid: own.gid,
        mac: own.mac,
        subnet: own.subnets.first().copied(),
        v6,
    })
}

/// What the fields of release 2.1 are before it.
const NO_LIMITS: V21Limits = V21Limits {
    max_conns: 0,
    max_links: 0,
    features: 0,
};

#[inline(never)]
fn v2_offer(caps: &Caps<'_>) -> Option<V2Offer> {
    let own = caps.v2.as_ref()?;
    let eids = offered_eids(caps)?;
    let limits = if own.release.has_v2_1_fields() {
        caps.limits()
    } else {
        NO_LIMITS
    };
    Some(V2Offer {
        release: own.release,
        eids,
        roce_gid: own.gid,
        max_conns: limits.max_conns,
        max_links: limits.max_links,
        features: limits.features,
        seid: None,
        ism: IsmList::EMPTY,
    })
}

#[inline(never)]
fn offered_eids(caps: &Caps<'_>) -> Option<EidList> {
    let own = caps.v2.as_ref().filter(|_| offers_v2(caps))?;
    let mut eids = EidList::EMPTY;
    // As many as there is room for.
    let _ = eids.extend_from_slice(own.eids);
    Some(eids)
}

/// The Proposal was sent; the server's Accept is expected.
#[derive(Clone, Copy, Debug)]
pub struct AwaitAccept {
    v1: bool,
    eids: Option<EidList>,
    offered: V21Limits,
    release: Release,
    host: HostName,
    mtu: PathMtu,
}

/// What the server decided, checked against what was offered.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// The version in use.
    pub version: Version,
    /// The release in use; of an existing link group it is not repeated and this is `None`.
    pub release: Option<Release>,
    /// The common enterprise ID; `None` in version 1.
    pub eid: Option<Eid>,
    /// The server makes a new link group.
    pub first_contact: bool,
    /// The server's end.
    pub peer: RdmaEndpoint,
    /// Connections the new link group may have.
    pub max_conns: u8,
    /// Links the new link group may have.
    pub max_links: u8,
    /// The path MTU for the new link: the smaller one of both ends.
    pub mtu: PathMtu,
    /// Name of the server's host, where it says one.
    pub peer_host: Option<HostName>,
    /// Number of the server's operating system, 0 where it does not say one.
    pub peer_os: u8,
    /// The server reaches this host without a gateway. False in version 1, where it has no meaning.
    pub peer_direct: bool,
    /// This host reaches the server without a gateway; to be cleared where it does not.
    pub direct: bool,
    features: u16,
    host: HostName,
}

impl AwaitAccept {
    /// Takes the server's answer.
    ///
    /// # Errors
    ///
    /// An [`Outcome`] that ends the attempt.
    pub fn handle(self, message: &Message) -> Result<Accepted, Outcome> {
        match message {
            Message::Accept(accept) => self.accept(accept).map_err(Outcome::Decline),
            other => Err(Outcome::unexpected(other)),
        }
    }

    fn accept(&self, accept: &Accept) -> Result<Accepted, DeclineReason> {
        let Endpoint::Rdma(peer) = accept.endpoint else {
            return Err(DeclineReason::MODEUNSUPP);
        };
        let eid = self.check_version(accept)?;
        let ext = accept.v2.as_ref().and_then(|v2| v2.fce);
        let (release, limits) = self.check_extension(accept, ext.as_ref())?;
        // The field says something only when a queue pair is made (RFC 7609 A.2.3).
        let mtu = match peer.mtu {
            Some(mtu) => mtu.min(self.mtu),
            None if accept.first_contact => return Err(DeclineReason::CNFERR),
            None => self.mtu,
        };
        Ok(Accepted {
            version: accept.version,
            release,
            eid,
            first_contact: accept.first_contact,
            peer,
            max_conns: limits.max_conns,
            max_links: limits.max_links,
            mtu,
            peer_host: ext.map(|ext| ext.host),
            peer_os: ext.map_or(0, |ext| ext.os_type),
            peer_direct: ext.is_some_and(|ext| ext.v2_direct),
            direct: true,
            features: limits.features,
            host: self.host,
        })
    }

    /// The version must be one that was offered, and the enterprise ID too.
    fn check_version(&self, accept: &Accept) -> Result<Option<Eid>, DeclineReason> {
        match (accept.version, accept.v2.as_ref(), self.eids.as_ref()) {
            (Version::V1, None, _) if self.v1 => Ok(None),
            (Version::V2, Some(v2), Some(eids)) => {
                if eids.contains(&v2.eid) {
                    Ok(Some(v2.eid))
                } else {
                    Err(DeclineReason::NOUEID)
                }
            }
            _ => Err(DeclineReason::MODEUNSUPP),
        }
    }

    /// Release and limits, which the server repeats on first contact only.
    fn check_extension(
        &self,
        accept: &Accept,
        ext: Option<&FirstContactExt>,
    ) -> Result<(Option<Release>, V21Limits), DeclineReason> {
        if accept.version == Version::V1 {
            return Ok((None, UNNEGOTIATED));
        }
        let Some(ext) = ext else {
            return if accept.first_contact {
                Err(DeclineReason::CNFERR)
            } else {
                Ok((None, UNNEGOTIATED))
            };
        };
        if ext.release > self.release {
            return Err(DeclineReason::RELEASEERR);
        }
        if !ext.release.has_v2_1_fields() {
            return Ok((Some(ext.release), UNNEGOTIATED));
        }
        let limits = ext.v21.ok_or(DeclineReason::CNFERR)?;
        check_limits(limits, self.offered)?;
        // Linux answers with all that it can do: only what both can do is in use.
        let features = limits.features & self.offered.features;
        Ok((Some(ext.release), V21Limits { features, ..limits }))
    }
}

impl Accepted {
    /// The server, as link groups are looked up by.
    pub const fn peer_id(&self) -> PeerId {
        self.peer.peer_id
    }

    /// GID of the server's port.
    pub const fn peer_gid(&self) -> Gid {
        self.peer.gid
    }

    /// MAC address of the server's port.
    pub const fn peer_mac(&self) -> Mac {
        self.peer.mac
    }

    /// Builds the Confirm from this host's end of the connection.
    ///
    /// `first_contact` is the flag of the Accept; after [`super::GroupChoice::decide`] both agree.
    pub fn confirm(&self, local: RdmaEndpoint, first_contact: bool) -> Confirm {
        let v2 = self.eid.map(|eid| {
            let release = self.release.filter(|_| first_contact);
            let mut gids = GidList::EMPTY;
            if release.is_some() {
                // An empty list takes one entry.
                let _ = gids.push(local.gid);
            }
            V2Fields {
                eid,
                fce: release.map(|release| {
                    let limits = V21Limits {
                        max_conns: self.max_conns,
                        max_links: self.max_links,
                        features: self.features,
                    };
                    extension(self.host, self.direct, release, limits)
                }),
                gids,
            }
        });
        Confirm {
            version: self.version,
            first_contact,
            endpoint: Endpoint::Rdma(local),
            v2,
        }
    }
}
