//! The prices that come with the program.

/// Name and text of each file, in any order.
pub(crate) const FILES: [(&str, &str); 13] = [
    ("builtin/anthropic.yaml", include_str!("../data/anthropic.yaml")),
    ("builtin/cohere.yaml", include_str!("../data/cohere.yaml")),
    ("builtin/dashscope.yaml", include_str!("../data/dashscope.yaml")),
    ("builtin/deepinfra.yaml", include_str!("../data/deepinfra.yaml")),
    ("builtin/deepseek.yaml", include_str!("../data/deepseek.yaml")),
    ("builtin/fireworks_ai.yaml", include_str!("../data/fireworks_ai.yaml")),
    ("builtin/google.yaml", include_str!("../data/google.yaml")),
    ("builtin/groq.yaml", include_str!("../data/groq.yaml")),
    ("builtin/mistral.yaml", include_str!("../data/mistral.yaml")),
    ("builtin/openai.yaml", include_str!("../data/openai.yaml")),
    ("builtin/together_ai.yaml", include_str!("../data/together_ai.yaml")),
    ("builtin/voyage.yaml", include_str!("../data/voyage.yaml")),
    ("builtin/xai.yaml", include_str!("../data/xai.yaml")),
];

#[cfg(test)]
mod tests;
