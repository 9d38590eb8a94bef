//! What is left of a handshake, against rustls on the other side.

mod common;

use std::io::Write;
use std::sync::Arc;

use common::tls::*;
use holdfast_core::tls::{Alert, Content, Handshake, LONGEST_RECORD, Message, Progress, Session, TlsConfig, record_size};
use rustls::{ClientConfig, ClientConnection};

/// A client of rustls, and what is left of the handshake here. True if it was resumed.
fn connected(server: &TlsConfig, client: &Arc<ClientConfig>) -> (ClientConnection, Session, bool) {
    let mut client = ClientConnection::new(client.clone(), "localhost".try_into().unwrap()).unwrap();
    let mut handshake = Handshake::server(server.clone()).unwrap();
    let (mut input, mut output) = (Vec::new(), Vec::new());
    loop {
        input.append(&mut records_of(&mut client));
        let mut done = false;
        while let Some(size) = record_size(&input, LONGEST_RECORD).unwrap().filter(|size| input.len() >= *size) {
            let record: Vec<u8> = input.drain(..size).collect();
            done = handshake.read(&record, &mut output) == Progress::Done;
        }
        receive(&mut client, &mut output);
        if done {
            let is_resumed = handshake.is_resumed();
            return (client, handshake.finish().unwrap(), is_resumed);
        }
    }
}

/// The records that a client sends.
fn sent(client: &mut ClientConnection, text: &[u8]) -> Vec<u8> {
    client.writer().write_all(text).unwrap();
    records_of(client)
}

#[test]
fn what_is_written_after_a_handshake_is_read_by_rustls_and_the_other_way_round() {
    let server = server_config();
    for (allows_tls12, cipher) in ALL {
        let (mut client, session, _) = connected(&server, &client_config(allows_tls12, cipher));
        let mut session = Session::from_bytes(&session.bytes()).unwrap();
        let mut out = Vec::new();
        for text in [&b"a ping"[..], &[b'x'; 40_000], b"", b"the last"] {
            session.seal(Content::Data, text, &mut out);
            assert_eq!(receive(&mut client, &mut out), text, "{cipher:?}");
            if !text.is_empty() && text.len() < 10_000 {
                assert_eq!(session.open(&mut sent(&mut client, text)), Ok(Message::Data(text)));
            }
        }
        client.send_close_notify();
        assert_eq!(session.open(&mut sent(&mut client, b"")), Ok(Message::CloseNotify));
        session.seal_alert(Alert::CloseNotify, &mut out);
        let mut rest = &out[..];
        client.read_tls(&mut rest).unwrap();
        assert!(client.process_new_packets().unwrap().peer_has_closed());
    }
}

#[test]
fn keys_are_replaced_in_both_directions_as_often_as_either_side_wants() {
    for (_, cipher) in &ALL[..2] {
        let (mut client, mut session, _) = connected(&server_config(), &client_config(false, *cipher));
        let mut out = Vec::new();
        for round in 0..3 {
            client.refresh_traffic_keys().unwrap();
            let mut records = sent(&mut client, b"more");
            let update = record_size(&records, LONGEST_RECORD).unwrap().unwrap();
            assert_eq!(session.open(&mut records[..update]), Ok(Message::KeyUpdate(true)), "{round}");
            session.seal_key_update(&mut out);
            session.seal(Content::Data, b"hello", &mut out);
            assert_eq!(receive(&mut client, &mut out), b"hello");
            assert_eq!(session.open(&mut records[update..]), Ok(Message::Data(b"more")));
        }
    }
}

#[test]
fn a_record_that_was_changed_repeated_cut_or_left_out_is_not_read() {
    for (allows_tls12, cipher) in ALL {
        let (mut client, session, _) = connected(&server_config(), &client_config(allows_tls12, cipher));
        let copy = || Session::from_bytes(&session.bytes()).unwrap();
        let first = sent(&mut client, b"first");
        let second = sent(&mut client, b"second");
        for place in 0..first.len() {
            for bit in 0..8 {
                let mut changed = first.clone();
                changed[place] ^= 1 << bit;
                assert!(copy().open(&mut changed).is_err(), "{cipher:?}: bit {bit} of byte {place}");
            }
            assert!(copy().open(&mut first[..place].to_vec()).is_err());
        }
        assert_eq!(copy().open(&mut second.clone()), Err(Alert::BadRecordMac), "the first one is missing");
        let mut session = copy();
        assert_eq!(session.open(&mut first.clone()), Ok(Message::Data(b"first")));
        assert_eq!(session.open(&mut first.clone()), Err(Alert::BadRecordMac), "the same again");
        assert_eq!(session.open(&mut second.clone()), Ok(Message::Data(b"second")));
    }
}

#[test]
fn a_client_with_a_ticket_resumes_also_with_another_server_that_has_the_secret() {
    for (allows_tls12, cipher) in ALL {
        let client = client_config(allows_tls12, cipher);
        assert!(!connected(&server_config(), &client).2);
        assert!(connected(&server_config(), &client).2, "{cipher:?}");
    }
}
