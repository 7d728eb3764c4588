//! `show_threads`: lists threads and the processors they run on.

use crate::api_modules::VLIB;
use crate::report;
use thalweg_api::{ApiType, Call, Message, Retval, Text};
use thalweg_graph::control::Control;

/// Requests all threads.
#[derive(Debug, Message)]
#[api(request)]
pub struct ShowThreads;

/// A thread.
#[derive(Debug, ApiType)]
pub struct ThreadData {
    /// Index of the thread: main is 0, workers follow.
    pub id: u32,
    /// Its name.
    pub name: Text<64>,
    /// `workers`, or empty for the main thread.
    pub r#type: Text<64>,
    /// The kernel's thread id.
    pub pid: u32,
    /// Processor that the thread is pinned to, or last ran on.
    pub cpu_id: u32,
    /// Core of that processor.
    pub core: u32,
    /// Socket of that core.
    pub cpu_socket: u32,
}

/// Replies to [`ShowThreads`].
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
    let thread = |(id, t): (usize, thalweg_graph::control::ThreadInfo)| {
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
