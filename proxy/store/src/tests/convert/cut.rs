//! A connection to PostgreSQL that breaks after so many statements.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// Statements end with these messages of a client: one that is simple, and one with parameters.
const ENDS: [u8; 2] = [b'Q', b'S'];

/// Carries one connection to the server at `port`. It passes `statements` on, and then the client is
/// gone: the server gets the last one, and its answer reaches nobody. The port for the client.
pub(super) fn cut_after(statements: usize, port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut answers, mut heard) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || io::copy(&mut answers, &mut heard));
        // The client ends it, where it has fewer statements.
        let _ = carry(&client, &server, statements);
        let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    });
    address.port()
}

fn carry(mut client: &TcpStream, mut server: &TcpStream, statements: usize) -> io::Result<()> {
    let mut left = statements;
    // The first message has no kind.
    let mut kind = None;
    while left > 0 {
        let mut length = [0; 4];
        client.read_exact(&mut length)?;
        let mut message = Vec::from_iter(kind);
        message.extend(length);
        let mut rest = vec![0; u32::from_be_bytes(length) as usize - length.len()];
        client.read_exact(&mut rest)?;
        message.extend(rest);
        server.write_all(&message)?;
        left -= usize::from(kind.is_some_and(|kind| ENDS.contains(&kind)));
        if left > 0 {
            let mut next = [0];
            client.read_exact(&mut next)?;
            kind = Some(next[0]);
        }
    }
    Ok(())
}
