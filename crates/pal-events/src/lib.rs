//! Events of an agent and questions to its user, as plain data.
//!
//! User interfaces, recorders and telemetry depend on this crate alone, not on the agent that produces the events.

mod agent_control;
mod agent_event;
mod call_subject;
mod permission_question;
mod response_progress;
mod user_question;

pub use agent_control::AgentControl;
pub use agent_event::{
    AgentEvent, ExchangeReport, McpServerInfo, NO_STRUCTURED_OUTPUT, PromptEnd, PromptResult, SessionInfo,
    ToolDenial,
};
pub use call_subject::{call_subject, summarize_call};
pub use permission_question::{
    CallApproval, ConsentMark, MarkSentence, PermissionAnswer, PermissionAsker, PermissionQuestion,
};
pub use response_progress::{BlockGrowth, ResponseProgress};
pub use user_question::{ASK_USER_QUESTION, QuestionAnswer, QuestionOption, UserQuestion};
