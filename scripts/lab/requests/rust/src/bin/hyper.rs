//! hyper by itself: what is left without a framework. The route is compared by hand.

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use holdfast_requests::{Answer, HEADERS, Start};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::http::response::Builder;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let name = request.uri().path().strip_prefix("/bench/").filter(|name| !name.is_empty() && !name.contains('/'));
    let decoded = name.and_then(|name| percent_decode_str(name).decode_utf8().ok());
    let (&Method::GET, Some(name)) = (request.method(), decoded) else {
        return Ok(complete(Response::builder().status(StatusCode::NOT_FOUND), Bytes::new()));
    };
    let query = request.uri().query().unwrap_or_default();
    let id = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "id").map(|(_, value)| value);
    let body = Answer { name: &name, id: id.as_deref() }.json();
    let head = HEADERS.iter().fold(Response::builder(), |head, (name, value)| head.header(*name, *value));
    Ok(complete(head, body.into()))
}

fn complete(head: Builder, body: Bytes) -> Response<Full<Bytes>> {
    head.body(Full::new(body)).expect("the headers are valid")
}

fn main() -> Result<(), Box<dyn Error>> {
    let start = Start::from_args()?;
    start.runtime()?.block_on(async {
        let listener = start.listen().await?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                let mut server = hyper::server::conn::http1::Builder::new();
                // A client that leaves is no news.
                let _ = server.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service_fn(respond)).await;
            });
        }
    })
}
