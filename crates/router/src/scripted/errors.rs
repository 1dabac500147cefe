//! What an error that a script wants says.

use super::turn::HttpError;
use crate::dialect::ApiError;

/// The error in the form that every dialect can say.
pub(super) fn api_error(error: &HttpError) -> ApiError {
    let message = error.message.as_deref().unwrap_or("The script answers with this error.");
    ApiError::new(error.status, message)
}
