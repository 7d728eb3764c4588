//! Global settings of NAT44.

use super::publish::{Change, publish, publish_change};
use super::{MAX_LIMITS, Nat44, NatError, check_table, ensure, order};
use crate::config::Timeouts;
use crate::limits::LimitSettings;
use crate::log::{Log, Target};
use crate::nodes::nat44_ed_ticker::Order;
use crate::ports::Scheme;
use crate::time;
use crate::worker::Sweep;
use thalweg_fib::TableId;
use thalweg_graph::{Control, clock};
use thalweg_tables::MapError;

/// Sets session timeouts. They apply from the next packet of a session on.
///
/// # Errors
/// [`NatError::Memory`].
pub fn set_timeouts(c: &mut Control, timeouts: Timeouts) -> Result<(), NatError> {
    ensure(c)?;
    c.state::<Nat44>().borrow_mut().timeouts = timeouts;
    publish(c);
    Ok(())
}

/// Sets whether packets without a session or mapping are forwarded. Sessions of flows that were
/// forwarded end with it.
///
/// # Errors
/// [`NatError::Memory`].
pub fn set_forwarding(c: &mut Control, on: bool) -> Result<(), NatError> {
    ensure(c)?;
    let was = std::mem::replace(&mut c.state::<Nat44>().borrow_mut().forwarding, on);
    publish(c);
    if was && !on {
        order(c, |_| Order::Sweep(Sweep::Mappings));
    }
    Ok(())
}

/// Smallest MSS that connections can be limited to, in bytes.
pub const MIN_MSS: u16 = 64;

/// Sets the MSS limit for SYNs; 0 = none.
///
/// # Errors
/// [`NatError::Invalid`] below [`MIN_MSS`]; [`NatError::Memory`].
pub fn set_mss(c: &mut Control, mss: u16) -> Result<(), NatError> {
    if mss != 0 && mss < MIN_MSS {
        let text = format!("the MSS must be between {MIN_MSS} and 65535, not {mss}");
        return Err(NatError::Invalid(text));
    }
    ensure(c)?;
    c.state::<Nat44>().borrow_mut().mss = mss;
    publish(c);
    Ok(())
}

/// Sets the port assignment. All sessions with a pool address end, because ports identify workers.
///
/// # Errors
/// [`NatError::Memory`].
pub fn set_scheme(c: &mut Control, scheme: Scheme) -> Result<(), NatError> {
    ensure(c)?;
    let nat = c.state::<Nat44>();
    if nat.borrow().scheme == scheme {
        return Ok(());
    }
    nat.borrow_mut().scheme = scheme;
    redistribute(c);
    Ok(())
}

/// Adds all addresses and reserved ports again: all sessions with a pool address end.
fn redistribute(c: &mut Control) {
    let nat = c.state::<Nat44>();
    let gone = std::mem::take(&mut nat.borrow_mut().active);
    for a in &gone {
        order(c, |_| Order::Drop { address: a.address.to_bits(), twice: a.twice });
    }
    let pools = gone.iter().map(|a| (a.twice, a.address)).collect();
    publish_change(c, &Change { pools, ..Change::default() });
    publish(c);
}

/// Sets the workers that own sessions; `None` = all. All sessions end, because hosts and ports are
/// redistributed.
///
/// # Errors
/// [`NatError::Invalid`] if there is no such worker.
pub fn set_workers(c: &mut Control, named: Option<&[u16]>) -> Result<(), NatError> {
    let mut owners: Vec<u16> = named.into_iter().flatten().copied().collect();
    owners.sort_unstable();
    owners.dedup();
    let workers = c.workers();
    if let Some(wrong) = owners.iter().find(|w| usize::from(**w) >= workers) {
        let text = format!("there is no worker {wrong}; there are 0 to {}", workers - 1);
        return Err(NatError::Invalid(text));
    }
    if named.is_some() && owners.is_empty() {
        return Err(NatError::Invalid("at least one worker must own sessions".into()));
    }
    ensure(c)?;
    let nat = c.state::<Nat44>();
    let old = nat.borrow().owners(workers);
    nat.borrow_mut().owners = owners;
    if nat.borrow().owners(workers) == old {
        return Ok(());
    }
    let sessions = nat.borrow().sessions.unwrap_or(0);
    // Including sessions of static mappings.
    order(c, |_| Order::Sweep(Sweep::All));
    redistribute(c);
    send_limits(c, sessions)?;
    Ok(())
}

/// Sets the handling of new sessions when the table is full: refuse them, or recycle half-open
/// ones.
///
/// # Errors
/// [`NatError::Memory`].
pub fn set_refuse_when_full(c: &mut Control, refuse: bool) -> Result<(), NatError> {
    ensure(c)?;
    c.state::<Nat44>().borrow_mut().refuse = refuse;
    publish(c);
    Ok(())
}

/// Starts logging sessions, at a maximum rate in records per second, or stops.
///
/// # Errors
/// [`NatError::File`] if the destination cannot be opened, and [`NatError::Invalid`] for the file
/// that sessions are saved to; the previous log stays then.
pub fn set_log(c: &mut Control, to: Option<(Target, u32)>) -> Result<(), NatError> {
    let workers = c.workers();
    let (log, writers) = match to {
        None => (None, Vec::new()),
        Some((target, rate)) => {
            if let Target::File(path) = &target
                && c.state::<Nat44>().borrow().saving().is_some_and(|(file, _)| file == path)
            {
                let path = path.display();
                let text =
                    format!("sessions are saved to {path} (`nat44 save'): log to another file");
                return Err(NatError::Invalid(text));
            }
            let what = target.to_string();
            let started = Log::start(target, rate, workers);
            let (log, writers) = started.map_err(|e| NatError::File(what, e))?;
            (Some(log), writers)
        }
    };
    // Last: a log that cannot be opened enables nothing.
    ensure(c)?;
    let mut writers = writers.into_iter();
    order(c, |_| Order::Log(writers.next().map(Box::new)));
    let nat = c.state::<Nat44>();
    if let Some(log) = log.as_ref().filter(|log| matches!(log.target, Target::Ipfix(_))) {
        nat.borrow_mut().collector = Some((log.target.clone(), log.rate));
    }
    let old = std::mem::replace(&mut nat.borrow_mut().log, log);
    if let Some(mut old) = old {
        old.free_name();
        // Records written so far are read before the old thread ends.
        c.when_synced(|_| old.end());
    }
    Ok(())
}

/// Starts logging to the last IPFIX collector, with this domain and source port (0 keeps the
/// previous value), or stops.
///
/// # Errors
/// [`NatError`] if no collector is known, or another log is active.
pub fn set_ipfix(c: &mut Control, on: Option<(u32, u16)>) -> Result<(), NatError> {
    ensure(c)?;
    let nat = c.state::<Nat44>();
    let (now, collector) = {
        let nat = nat.borrow();
        (nat.log.as_ref().map(|log| log.target.clone()), nat.collector.clone())
    };
    match (now, on) {
        (Some(Target::Ipfix(_)), None) => set_log(c, None),
        (_, None) => Err(NatError::Missing("IPFIX log of sessions".into())),
        (Some(other @ (Target::File(_) | Target::Syslog(_))), Some(_)) => {
            Err(NatError::Exists(format!("a session log to {other} (`nat44 log off` stops it)")))
        }
        (now, Some((domain, port))) => {
            let Some((Target::Ipfix(mut to), rate)) = collector else {
                let text =
                    "no collector is configured; `nat44 log ipfix <address>:<port>` sets one";
                return Err(NatError::Invalid(text.into()));
            };
            to.domain = if domain == 0 { to.domain } else { domain };
            to.port = if port == 0 { to.port } else { port };
            let target = Target::Ipfix(to);
            if now.as_ref() == Some(&target) {
                return Ok(());
            }
            // The port is not free until the old log ends.
            set_log(c, None)?;
            set_log(c, Some((target, rate)))
        }
    }
}

/// Sets the session limit of a routing table, or per host with `None`; 0 = unlimited. Existing
/// sessions stay.
///
/// # Errors
/// [`NatError`].
pub fn set_limit(c: &mut Control, table: Option<TableId>, most: u32) -> Result<(), NatError> {
    ensure(c)?;
    check_table(table.unwrap_or(TableId(0)))?;
    let nat = c.state::<Nat44>();
    let (old, sessions) = {
        let mut nat = nat.borrow_mut();
        let old = (nat.limits.clone(), nat.per_host);
        match (table, most) {
            (None, _) => nat.per_host = most,
            (Some(table), 0) => drop(nat.limits.remove(&table)),
            (Some(table), _)
                if nat.limits.len() < MAX_LIMITS || nat.limits.contains_key(&table) =>
            {
                nat.limits.insert(table, most);
            }
            _ => {
                let text =
                    format!("the limit of {MAX_LIMITS} tables with a session limit is reached");
                return Err(NatError::Invalid(text));
            }
        }
        (old, nat.sessions.unwrap_or(0))
    };
    if let Err(e) = send_limits(c, sessions) {
        let mut nat = nat.borrow_mut();
        (nat.limits, nat.per_host) = old;
        return Err(e.into());
    }
    Ok(())
}

/// Sends limits to workers. A host belongs to one worker, and the limit of a table is divided among
/// workers.
fn send_limits(c: &mut Control, sessions: u32) -> Result<(), MapError> {
    let now = time::millis(clock::ticks());
    let workers = c.workers();
    let orders = {
        let nat = c.state::<Nat44>();
        let nat = nat.borrow();
        let owners = nat.owners(workers);
        let of = |worker: usize| {
            let place = owners.iter().position(|w| *w == worker);
            let part = |most: u32, place: usize| {
                let (n, place) = (owners.len() as u32, place as u32);
                most / n + u32::from(place < most % n)
            };
            // A worker that owns no sessions has nothing to count.
            let tables = nat.limits.iter();
            let tables = tables.filter_map(|(t, most)| Some((*t, part(*most, place?)))).collect();
            LimitSettings::new(tables, nat.per_host, sessions, now)
        };
        (0..workers).map(of).collect::<Result<Vec<_>, _>>()?
    };
    let mut orders = orders.into_iter();
    order(c, |_| Order::Limit(Box::new(orders.next().unwrap_or_default())));
    Ok(())
}
