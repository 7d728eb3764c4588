//! Claims of the demonstration, and checks that they hold.

use super::configs::Software;
use super::stream::{Losses, RATE};
use super::view::{Event, time};
use crate::claims::{Claim, Ended};
use crate::view::grouped;
use serde_json::{Value, json};
use std::time::Duration;

/// Datagrams in a thousand that a busy machine may lose by itself.
const NOISE: u64 = 1;
/// A router that restarts forwards again after this time, and more for a million routes, even on a
/// busy machine.
const RESTART: Duration = Duration::from_secs(2);
const RESTART_OF_A_MILLION: Duration = Duration::from_secs(8);

/// Measurements of a run.
pub struct Evidence {
    pub software: Software,
    /// Routes of each provider, the time until the router had them, and until both sessions were
    /// established as well.
    pub routes: u32,
    pub filled: Duration,
    pub ready: Duration,
    /// Time from the last route in the kernel until the router had it.
    pub behind: Duration,
    /// Losses of undisturbed seconds.
    pub steady: Losses,
    pub failure: Event,
    pub repair: Event,
    pub restart: Event,
    pub daemon: Event,
    /// The same sessions before and after the restart of the router.
    pub sessions_stayed: bool,
    /// Shares of the stream by way of each provider, in percent: before the failure, after it, and
    /// after the repair.
    pub by_way: [[f64; 2]; 3],
    /// Routes of the kernel and of the router in the end, and how many of them differ.
    pub kernel: u64,
    pub router: u64,
    pub differ: u64,
    pub ending: Ended,
}

/// Judges each claim.
pub fn judge(e: &Evidence) -> Vec<Claim> {
    vec![
        routes(e),
        steady(e),
        failure(e),
        repair(e),
        restart(e),
        daemon(e),
        same(e),
        Claim { name: "clean exit", holds: e.ending.clean, text: e.ending.words.clone() },
    ]
}

fn rate(count: u64, time: Duration) -> u64 {
    (count as f64 / time.as_secs_f64().max(1e-3)).round() as u64
}

fn routes(e: &Evidence) -> Claim {
    Claim {
        name: "routes",
        holds: e.router >= u64::from(e.routes),
        text: format!(
            "{} from each of two providers, in the router {} after the daemons' start, {} a \
             second, and {} after the kernel's last one",
            grouped(e.routes.into()),
            time(e.filled),
            grouped(rate(e.routes.into(), e.filled)),
            time(e.behind)
        ),
    }
}

/// Tells if no more is lost than a busy machine may lose.
fn is_quiet(l: &Losses) -> bool {
    l.sent > 0 && l.lost * 1000 <= l.sent * NOISE && !l.still
}

fn lost(l: &Losses) -> String {
    format!("{} of {} packets lost", grouped(l.lost), grouped(l.sent))
}

fn steady(e: &Evidence) -> Claim {
    Claim { name: "steady", holds: is_quiet(&e.steady), text: lost(&e.steady) }
}

fn away(l: &Losses) -> String {
    match l.back {
        Some((first, last)) => format!(
            "{} = {} for each destination in the mean; first back after {}, last after {}",
            lost(l),
            time(l.mean()),
            time(first),
            time(last)
        ),
        None => lost(l),
    }
}

/// The daemon's part of the time, and the router's.
fn changes(e: &Event) -> String {
    let Some((kernel, router)) = e.tables else { return String::new() };
    let behind = time(router.saturating_sub(kernel));
    format!("the daemon's last change came after {}, and was taken {behind} later; ", time(kernel))
}

fn failure(e: &Evidence) -> Claim {
    let l = &e.failure.losses;
    let [before, after, _] = e.by_way;
    Claim {
        name: "failure",
        holds: l.sent > 0 && !l.still && before[0] > 90.0 && after[1] > 90.0,
        text: format!("{}; {}all go by way of provider two", away(l), changes(&e.failure)),
    }
}

fn repair(e: &Evidence) -> Claim {
    let l = &e.repair.losses;
    Claim {
        name: "repair",
        holds: is_quiet(l) && e.by_way[2][0] > 90.0,
        text: format!("{}; all go by way of provider one again", lost(l)),
    }
}

fn restart(e: &Evidence) -> Claim {
    let l = &e.restart.losses;
    let sessions = if e.sessions_stayed { "both sessions stayed" } else { "sessions were lost" };
    let limit = RESTART + RESTART_OF_A_MILLION.mul_f64(f64::from(e.routes) / 1e6);
    Claim {
        name: "restart",
        holds: l.sent > 0
            && !l.still
            && e.sessions_stayed
            && l.back.is_none_or(|(_, last)| last < limit),
        text: format!("router killed and started: {}; {sessions}", away(l)),
    }
}

fn daemon(e: &Evidence) -> Claim {
    Claim {
        name: "daemon",
        holds: is_quiet(&e.daemon.losses),
        text: format!(
            "{} killed and started, with graceful restart: {}",
            e.software.name(),
            lost(&e.daemon.losses)
        ),
    }
}

fn same(e: &Evidence) -> Claim {
    Claim {
        name: "tables",
        holds: e.differ == 0 && e.kernel > 0 && e.router >= e.kernel,
        text: format!(
            "{} routes in the kernel, {} in the router with its own, {} differ",
            grouped(e.kernel),
            grouped(e.router),
            grouped(e.differ)
        ),
    }
}

/// Everything, as JSON.
pub fn to_json(e: &Evidence, claims: &[Claim]) -> Value {
    let claim = |c: &Claim| json!({ "claim": c.name, "holds": c.holds, "found": c.text });
    let ms = |time: Duration| time.as_millis() as u64;
    let losses = |l: &Losses| {
        json!({
            "sent": l.sent,
            "lost": l.lost,
            "destinations": l.destinations,
            "away_mean_ms": ms(l.mean()),
            "first_back_ms": l.back.map(|back| ms(back.0)),
            "last_back_ms": l.back.map(|back| ms(back.1)),
        })
    };
    let event = |e: &Event| {
        let mut all = losses(&e.losses);
        all["kernel_done_ms"] = json!(e.tables.map(|(kernel, _)| ms(kernel)));
        all["router_done_ms"] = json!(e.tables.map(|(_, router)| ms(router)));
        all
    };
    json!({
        "ok": claims.iter().all(|c| c.holds),
        "claims": claims.iter().map(claim).collect::<Vec<_>>(),
        "daemon": e.software.name(),
        "routes": e.routes,
        "filled_ms": ms(e.filled),
        "ready_ms": ms(e.ready),
        "behind_ms": ms(e.behind),
        "packets_per_second": RATE,
        "steady": losses(&e.steady),
        "failure": event(&e.failure),
        "repair": event(&e.repair),
        "router_restart": event(&e.restart),
        "daemon_restart": event(&e.daemon),
        "sessions_stayed": e.sessions_stayed,
        "kernel_routes": e.kernel,
        "router_routes": e.router,
        "differ": e.differ,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(lost: u64) -> Event {
        let back = Duration::from_millis(700);
        let losses = Losses {
            sent: 50_000,
            lost,
            destinations: 50,
            back: (lost > 0).then_some((back, back)),
            still: false,
        };
        let tables = Some((back / 2, back));
        Event { name: "it", at: Duration::ZERO, losses, tables, open: false }
    }

    fn good() -> Evidence {
        Evidence {
            software: Software::Bird,
            routes: 1000,
            filled: Duration::from_secs(2),
            ready: Duration::from_secs(3),
            behind: Duration::from_millis(300),
            steady: event(0).losses,
            failure: event(5000),
            repair: event(0),
            restart: event(3000),
            daemon: event(0),
            sessions_stayed: true,
            by_way: [[100.0, 0.0], [0.0, 100.0], [100.0, 0.0]],
            kernel: 1000,
            router: 1010,
            differ: 0,
            ending: Ended { clean: true, words: "all buffers are back".into() },
        }
    }

    fn broken(change: impl Fn(&mut Evidence)) -> Vec<&'static str> {
        let mut evidence = good();
        change(&mut evidence);
        let claims = judge(&evidence);
        assert_eq!(to_json(&evidence, &claims)["ok"], claims.iter().all(|c| c.holds));
        claims.iter().filter(|c| !c.holds).map(|c| c.name).collect()
    }

    #[test]
    fn each_claim_can_fail() {
        assert!(broken(|_| {}).is_empty());
        assert_eq!(broken(|e| e.routes = 2000), ["routes"]);
        assert_eq!(broken(|e| e.steady.lost = 100), ["steady"]);
        assert_eq!(broken(|e| e.steady.sent = 0), ["steady"]);
        assert_eq!(broken(|e| e.failure.losses.still = true), ["failure"]);
        assert_eq!(broken(|e| e.by_way[1] = [50.0, 50.0]), ["failure"]);
        assert_eq!(broken(|e| e.repair = event(500)), ["repair"]);
        assert_eq!(broken(|e| e.by_way[2] = [0.0, 100.0]), ["repair"]);
        assert_eq!(broken(|e| e.restart.losses.still = true), ["restart"]);
        assert_eq!(broken(|e| e.sessions_stayed = false), ["restart"]);
        assert_eq!(broken(|e| e.restart.losses.sent = 0), ["restart"]);
        assert!(broken(|e| e.restart = event(0)).is_empty());
        let late = Some((RESTART, RESTART * 2));
        assert_eq!(broken(|e| e.restart.losses.back = late), ["restart"]);
        assert_eq!(broken(|e| e.daemon = event(500)), ["daemon"]);
        assert_eq!(broken(|e| e.differ = 1), ["tables"]);
        assert_eq!(broken(|e| e.kernel = 2000), ["tables"]);
        assert_eq!(broken(|e| e.ending.clean = false), ["clean exit"]);
    }
}
