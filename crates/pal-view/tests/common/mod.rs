//! Shared test helpers: a lens, and a request checked by the strict validator.

use pal_model::{ModelCatalog, SharedText, TokenGeneration};
use pal_view::{
    BreakpointPosition, CacheBreakpoint, CacheTtl, Estimator, Lens, RenderOptions, Request, View, ViewScope,
};
use pal_wire::{Beta, BetaSet, RequestRules, check_request};

pub(crate) const OPTIONS: RenderOptions =
    RenderOptions { max_tokens: 8_000, stream: true, spell_out_unseen: false };

pub(crate) fn lens(scope: ViewScope) -> Lens {
    let card = ModelCatalog::built_in().find("claude-opus-5-5").card;
    Lens { card, estimator: Estimator::shipped(TokenGeneration::Claude47), scope }
}

/// The same, for an endpoint that deletes results from its cache.
pub(crate) fn editing_lens(scope: ViewScope) -> Lens {
    let own = "[models.editing]\nlike = \"claude-opus-5-5\"\ncache_edits = true\n";
    let card = ModelCatalog::built_in().with_overrides(own).unwrap().find("editing").card;
    Lens { card, ..lens(scope) }
}

/// The same, for a model that takes no messages of the system inside the conversation.
pub(crate) fn reminding_lens(scope: ViewScope) -> Lens {
    let mut lens = lens(scope);
    lens.card.can.system_messages = false;
    lens
}

/// Renders and lets the validator judge; a refusal is shown with the body.
pub(crate) fn checked(view: &View) -> Result<Request, String> {
    let request = view.render(OPTIONS);
    let body = request.body();
    if body != view.render(OPTIONS).body() {
        return Err("rendered twice, the bytes differ".into());
    }
    let system_messages = view.lens().card.can.system_messages;
    let mut rules = RequestRules { betas: BetaSet::none(), system_messages, ..RequestRules::newest() };
    if view.lens().card.can.cache_edits {
        rules.betas = rules.betas.with(Beta::CacheEdits);
    }
    if view.lens().card.can.provider_compaction {
        rules.betas = rules.betas.with(Beta::Compaction);
    }
    let check = |body: String| match check_request(body.as_bytes(), &rules) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}\n{body}", error.message)),
    };
    check(body)?;
    // Breakpoints may move and have another TTL; nothing else may change with them.
    let marked = marked(&request, CacheTtl::Hour1);
    check(marked.body())?;
    if marked.fingerprint() != request.fingerprint() || unmarked(&marked.body()) != unmarked(&request.body())
    {
        return Err("other marks make another request".into());
    }
    Ok(request)
}

/// A request with a breakpoint at every likely position.
pub(crate) fn marked(request: &Request, ttl: CacheTtl) -> Request {
    let is_deferred = |tool: &SharedText| tool.contains(r#""defer_loading":true"#);
    let spots = [
        request.tools().iter().rposition(|tool| !is_deferred(tool)).map(BreakpointPosition::Tool),
        request.system_blocks().len().checked_sub(1).map(BreakpointPosition::System),
        request.last_cacheable_block(request.blocks_before_last_message()).map(BreakpointPosition::Block),
        request.last_cacheable_block(request.block_count()).map(BreakpointPosition::Block),
    ];
    let marks = spots.into_iter().flatten().map(|spot| CacheBreakpoint { position: spot, ttl, scope: None });
    request.clone().with_breakpoints(marks.collect())
}

/// A body without its breakpoints.
pub(crate) fn unmarked(body: &str) -> String {
    let marks =
        [r#","cache_control":{"type":"ephemeral"}"#, r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#];
    marks.iter().fold(body.to_owned(), |body, mark| body.replace(mark, ""))
}
