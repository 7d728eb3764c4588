//! `show_threads`: who runs where.

use crate::api_modules::VLIB;
use crate::control::Control;
use crate::report;
use thalweg_api::{ApiType, Call, Message, Retval, Text};

/// Asks for all threads.
#[derive(Debug, Message)]
#[api(request)]
pub struct ShowThreads;

/// A thread.
#[derive(Debug, ApiType)]
pub struct ThreadData {
    /// Its number: main is 0, workers follow.
    pub id: u32,
    /// Its name.
    pub name: Text<64>,
    /// `workers`, or nothing for the main thread.
    pub r#type: Text<64>,
    /// The kernel's number of it.
    pub pid: u32,
    /// The processor that it is pinned to, or ran on last.
    pub cpu_id: u32,
    /// That processor's core.
    pub core: u32,
    /// That core's socket.
    pub cpu_socket: u32,
}

/// Answers [`ShowThreads`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ShowThreadsReply {
    /// All threads.
    #[api(count = "count: u32")]
    pub thread_data: Vec<ThreadData>,
}

/// The service.
pub static SERVICE: Call<Control, ShowThreads, ShowThreadsReply> = Call::new(&VLIB, handle);

fn handle(c: &mut Control, _: ShowThreads) -> Result<ShowThreadsReply, Retval> {
    let thread = |(id, t): (usize, crate::control::ThreadInfo)| {
        let cpu = t.core.or(report::scheduling(t.tid).cpu);
        let at = |what: &str| {
            let number = cpu.and_then(|cpu| report::topology(cpu, what));
            number.map_or(0, |number| number as u32)
        };
        ThreadData {
            id: id as u32,
            name: t.name.as_str().into(),
            r#type: if id == 0 { "" } else { "workers" }.into(),
            pid: t.tid.unsigned_abs(),
            cpu_id: cpu.map_or(0, |cpu| cpu as u32),
            core: at("core_id"),
            cpu_socket: at("physical_package_id"),
        }
    };
    let thread_data = c.threads().into_iter().enumerate().map(thread).collect();
    Ok(ShowThreadsReply { thread_data })
}
