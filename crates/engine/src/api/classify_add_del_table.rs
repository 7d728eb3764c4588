//! `classify_add_del_table`: makes a classifier table, for filters of traces and captures.

use crate::classify::{Classifier, NONE, Table, VECTOR};
use crate::message_types::{CLASSIFY, ClassifyAddDelTable, ClassifyAddDelTableReply};
use std::collections::BTreeMap;
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

impl Default for ClassifyAddDelTableReply {
    fn default() -> Self {
        let [new_table_index, skip_n_vectors, match_n_vectors] = [NONE; 3];
        ClassifyAddDelTableReply { new_table_index, skip_n_vectors, match_n_vectors }
    }
}

/// The service.
pub static SERVICE: Call<Control, ClassifyAddDelTable, ClassifyAddDelTableReply> =
    Call::new(&CLASSIFY, handle);

/// The size of the memory is 0.
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
