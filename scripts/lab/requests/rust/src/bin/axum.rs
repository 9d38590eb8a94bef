//! axum, as its documentation shows it.

use std::error::Error;

use axum::Router;
use axum::extract::{Path, Query};
use axum::response::IntoResponse;
use axum::routing::get;
use holdfast_requests::{Answer, HEADERS, Start};
use serde::Deserialize;

#[derive(Deserialize)]
struct Asked {
    id: Option<String>,
}

async fn answer(Path(name): Path<String>, Query(asked): Query<Asked>) -> impl IntoResponse {
    let answer = Answer { name: &name, id: asked.id.as_deref() };
    (HEADERS, answer.json())
}

fn main() -> Result<(), Box<dyn Error>> {
    let start = Start::from_args()?;
    start.runtime()?.block_on(async {
        let app = Router::new().route("/bench/{name}", get(answer));
        axum::serve(start.listen().await?, app).await?;
        Ok(())
    })
}
