//! `show_threads`: lists threads and the processors they run on.

use crate::message_types::{ShowThreads, ShowThreadsReply, ThreadData, VLIB};
use crate::report;
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

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
