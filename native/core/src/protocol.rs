//! The numbers that JS and the core agree on. `native/protocol.js` has the same; `test/native.parity.test.js` compares.

/// Changes when a record, a number or the napi surface changes, so that an old addon is noticed when it is loaded.
pub const PROTOCOL: u32 = 12;

macro_rules! ops {
    ($($name:ident = $code:literal,)*) => {
        /// The code of each operation.
        #[allow(non_upper_case_globals)]
        pub mod op {
            $(pub const $name: u8 = $code;)*
        }

        /// By name.
        pub const OPS: &[(&str, u8)] = &[$((stringify!($name), $code)),*];
    };
}

ops! {
    hold = 1,
    refuse = 2,
    respond = 3,
    pass = 4,
    send = 5,
    end = 6,
    subscribe = 7,
    unsubscribe = 8,
    publish = 9,
    drain = 10,
    opening = 11,
    remember = 12,
    write = 13,
    label = 14,
    end_channel = 15,
    end_labelled = 16,
    end_updates = 17,
    tag = 18,
    reply = 19,
}
