//! `classify_add_del_table`: makes a classifier table, for filters of traces and captures.

use crate::api_modules::CLASSIFY;
use crate::classify::{Classifier, NONE, Table, VECTOR};
use std::collections::BTreeMap;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Makes a table, has one lead to another, or removes one.
#[derive(Debug, Message)]
#[api(request)]
pub struct ClassifyAddDelTable {
    /// True to make or change one, false to remove it.
    pub is_add: bool,
    /// True to remove those that it leads to, too.
    pub del_chain: bool,
    /// The table to change or remove; all ones to make one.
    #[api(default = 0xffff_ffff)]
    pub table_index: u32,
    /// Hash buckets; kept, and without effect.
    #[api(default = 2)]
    pub nbuckets: u32,
    /// Memory in bytes; without effect.
    #[api(default = 2_097_152)]
    pub memory_size: u32,
    /// Vectors of 16 bytes before the mask.
    #[api(default = 0)]
    pub skip_n_vectors: u32,
    /// Vectors of the mask.
    #[api(default = 1)]
    pub match_n_vectors: u32,
    /// The table to try next; all ones for none.
    #[api(default = 0xffff_ffff)]
    pub next_table_index: u32,
    /// Where packets without a session would go; kept.
    #[api(default = 0xffff_ffff)]
    pub miss_next_index: u32,
    /// Where the first byte is; 0 and 1 mean the same for packets that are received.
    #[api(default = 0)]
    pub current_data_flag: u8,
    /// Bytes to step over; has to be 0.
    #[api(default = 0)]
    pub current_data_offset: i16,
    /// The bits that count.
    #[api(count = "mask_len: u32")]
    pub mask: Vec<u8>,
}

/// Replies to [`ClassifyAddDelTable`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct ClassifyAddDelTableReply {
    /// The table; all ones if it was removed.
    pub new_table_index: u32,
    /// Vectors before its mask.
    pub skip_n_vectors: u32,
    /// Vectors of its mask.
    pub match_n_vectors: u32,
}

impl Default for ClassifyAddDelTableReply {
    fn default() -> Self {
        let [new_table_index, skip_n_vectors, match_n_vectors] = [NONE; 3];
        ClassifyAddDelTableReply { new_table_index, skip_n_vectors, match_n_vectors }
    }
}

/// The service.
pub static SERVICE: Call<Control, ClassifyAddDelTable, ClassifyAddDelTableReply> =
    Call::new(&CLASSIFY, handle);

/// The memory is none at all.
const INVALID_MEMORY_SIZE: Retval = Retval(-70);

fn handle(c: &mut Control, rq: ClassifyAddDelTable) -> Result<ClassifyAddDelTableReply, Retval> {
    let state = c.state::<Classifier>();
    let mut state = state.borrow_mut();
    if rq.mask.len() as u64 != u64::from(rq.match_n_vectors) * VECTOR as u64 {
        return Err(Retval::INVALID_VALUE.because("the mask is not as long as its vectors"));
    }
    if !rq.is_add {
        state.remove(rq.table_index, rq.del_chain)?;
        return Ok(ClassifyAddDelTableReply::default());
    }
    let next = Some(rq.next_table_index).filter(|next| *next != NONE);
    let index = if rq.table_index != NONE {
        state.set_next(rq.table_index, next)?;
        rq.table_index
    } else {
        if rq.memory_size == 0 {
            return Err(INVALID_MEMORY_SIZE);
        }
        if rq.nbuckets == 0 {
            return Err(Retval::INVALID_VALUE.because("a table has at least one bucket"));
        }
        if rq.current_data_flag > 1 || rq.current_data_offset != 0 {
            let text = "tables look at packets from their first byte on";
            return Err(Retval::INVALID_VALUE.because(text));
        }
        state.add(Table {
            skip: rq.skip_n_vectors,
            mask: rq.mask,
            next,
            buckets: rq.nbuckets,
            miss_next: rq.miss_next_index,
            sessions: BTreeMap::new(),
        })?
    };
    let table = state.table(index).ok_or(Retval::NO_SUCH_TABLE)?;
    Ok(ClassifyAddDelTableReply {
        new_table_index: index,
        skip_n_vectors: table.skip,
        match_n_vectors: table.vectors(),
    })
}
