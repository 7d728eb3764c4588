//! Events, timers, and the main thread's loop.

use super::{Control, Remote, TimerId, WorkerHandle};
use crate::clock;
use crate::mailbox::{Event, ToWorker, Topic};
use crate::poller::Woken;
use std::rc::Rc;
use std::time::{Duration, Instant};
use thalweg_buffer::PoolAudit;

/// Maximum time that other threads' jobs may delay events and timers, except for the last job.
const JOBS: Duration = Duration::from_millis(2);

impl Control {
    /// Registers a topic of events and its handler.
    pub fn topic(
        &mut self,
        name: &'static str,
        f: impl Fn(&mut Control, &Event) + 'static,
    ) -> Topic {
        self.topics.push((name, Rc::new(f)));
        Topic(self.topics.len() as u16 - 1)
    }

    /// Runs `job` after `delay`.
    pub fn after(&mut self, delay: Duration, job: impl FnOnce(&mut Control) + 'static) -> TimerId {
        let id = TimerId(self.next_timer);
        self.next_timer += 1;
        self.timers.push(std::cmp::Reverse((clock::now() + delay, id)));
        self.timer_jobs.insert(id, Box::new(job));
        id
    }

    /// Cancels a timer.
    pub fn cancel(&mut self, id: TimerId) {
        self.timer_jobs.remove(&id);
    }

    /// Runs `job` every `period`, first after one period, until it returns false.
    pub fn every(&mut self, period: Duration, mut job: impl FnMut(&mut Control) -> bool + 'static) {
        self.after(period, move |c| {
            if job(c) {
                c.every(period, job);
            }
        });
    }

    /// Moves the clock of all timers ahead, those of workers included: what is due by then happens
    /// at once. Durations that are measured, and the time of day, are not affected.
    pub fn adjust_clock(&mut self, by: Duration) {
        clock::adjust(by);
        // A worker that sleeps until a deadline looks at the clock again.
        self.when_synced(|_| ());
    }

    /// Returns a handle for other threads.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Ends [`run`](Self::run).
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Runs the main loop until [`stop`](Self::stop).
    pub fn run(&mut self) {
        while !self.stopping {
            self.run_once(None);
        }
    }

    /// Handles pending work, waiting for it until the next timer (or `limit`) at most.
    pub fn run_once(&mut self, limit: Option<Duration>) {
        let start = clock::cycles();
        self.main.loops += 1;
        let mut did = self.work();
        did |= self.fire_timers();
        let took = clock::cycles().wrapping_sub(start);
        self.main.busy += took;
        if did {
            self.main_loops.add(took);
            return;
        }
        let now = clock::now();
        let next = self.timers.peek().map(|t| t.0.0.saturating_duration_since(now));
        // Retired memory waits for workers; look again soon, but only while there is some.
        let gc = (self.domain.pending() > 0).then_some(Duration::from_millis(10));
        let waiting = self.workers.iter().any(|w| !w.waiting.is_empty());
        let retry = waiting.then_some(Duration::from_micros(200));
        let timeout = [next, limit, gc, retry].into_iter().flatten().min();
        self.waker.begin_sleep();
        match self.jobs.try_recv() {
            Ok(job) => {
                self.waker.end_sleep(false);
                let start = clock::cycles();
                job(self);
                let took = clock::cycles().wrapping_sub(start);
                self.main.busy += took;
                self.main_loops.add(took);
            }
            Err(_) => {
                let mut woken = Woken::default();
                if self.workers.iter().all(|w| w.events.is_empty() && w.trash.is_empty()) {
                    self.main.sleeps += 1;
                    woken = self.poller.wait(timeout);
                }
                self.waker.end_sleep(woken.by_waker);
            }
        }
    }

    /// Does one round over jobs, workers' events and retired memory.
    fn work(&mut self) -> bool {
        let mut did = false;
        let began = Instant::now();
        for _ in 0..256 {
            let Ok(job) = self.jobs.try_recv() else { break };
            job(self);
            did = true;
            if began.elapsed() >= JOBS {
                break;
            }
        }
        self.flush();
        for w in 0..self.workers.len() {
            while self.workers[w].trash.pop().is_ok() {}
            for _ in 0..1024 {
                let Ok(e) = self.workers[w].events.pop() else { break };
                did = true;
                let handler = self.topics.get(e.topic.0 as usize).map(|(_, h)| h.clone());
                if let Some(h) = handler {
                    h(self, &e);
                }
            }
        }
        self.domain.reclaim();
        did
    }

    fn fire_timers(&mut self) -> bool {
        let mut did = false;
        let now = clock::now();
        while let Some(std::cmp::Reverse((at, id))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            if let Some(job) = self.timer_jobs.remove(&id) {
                job(self);
                did = true;
            }
        }
        did
    }

    /// Asks the workers to end, and waits for them up to `limit`. Returns those that are at work
    /// still.
    pub fn stop_workers(&mut self, limit: Duration) -> Vec<usize> {
        let begun = Instant::now();
        for w in 0..self.workers.len() {
            self.send(w, ToWorker::Stop);
        }
        let running = |w: &WorkerHandle| w.thread.as_ref().is_some_and(|t| !t.is_finished());
        while self.workers.iter().any(running) && begun.elapsed() < limit {
            // A worker with more messages than its ring holds must receive the last of them, too.
            self.flush();
            std::thread::sleep(Duration::from_micros(200));
        }
        (0..self.workers.len()).filter(|w| running(&self.workers[*w])).collect()
    }

    /// Stops the workers and returns the buffer counts: `in_use` is 0 unless packets leaked.
    pub fn shut_down(&mut self) -> PoolAudit {
        self.stop_workers(Duration::MAX);
        for w in &mut self.workers {
            if let Some(t) = w.thread.take() {
                let _ = t.join();
            }
            while w.trash.pop().is_ok() {}
        }
        self.states.clear();
        if let Some(places) = self.places.take() {
            places.leave();
        }
        // Frames still in the rings are freed with them.
        self.hand_offs.clear();
        self.pool.audit()
    }
}
