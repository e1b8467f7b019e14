//! Reads the prompts of Gemini, Cohere, Bedrock, Vertex AI and SageMaker.

use super::{Members, Node, PromptReader, asks_for_several, is_word};
use taximeter_meter::Wire;

impl PromptReader {
    /// Reads a request on a wire of theirs.
    pub(super) fn read_cloud(&mut self, wire: Wire, request: &Members<'_>) {
        match wire {
            Wire::VertexGenerate => self.read_instances(request),
            Wire::TokenIds => {
                self.read_inputs(request.get("token_ids"));
                self.estimated |= request.get("features").is_some_and(|value| !is_word(*value));
            }
            Wire::Invocations => {
                match ["messages", "prompt"].map(|key| request.contains_key(key)) {
                    [true, _] => self.read(Wire::ChatCompletions, request),
                    [false, true] => self.read(Wire::Completions, request),
                    [false, false] => self.read(Wire::Embeddings, request),
                }
            }
            Wire::CohereChat => {
                self.read_beside(request, &["messages", "documents"]);
                self.read_json(request, &["tools", "response_format"]);
            }
            Wire::GenerateContent => {
                self.read_beside(request, &["systemInstruction", "system_instruction", "contents"]);
                self.read_json(request, &["tools"]);
            }
            Wire::Converse => {
                self.read_beside(request, &["system", "messages"]);
                self.read_json(request, &["toolConfig"]);
            }
            _ => self.estimated = true,
        }
    }

    /// Prompts as Vertex AI sends them, each in an object of its own.
    fn read_instances(&mut self, request: &Members<'_>) {
        let Some(Node::List(instances)) = request.get("instances").copied().map(Node::of) else {
            self.estimated = true;
            return;
        };
        for instance in instances {
            match Node::of(instance) {
                Node::Object(members) => self.read(Wire::Generate, &members),
                _ => self.estimated = true,
            }
        }
        if let Some(Node::Object(members)) = request.get("parameters").copied().map(Node::of) {
            let sampling = members.get("sampling_params");
            self.estimated |= sampling.is_some_and(|value| asks_for_several(*value));
        }
    }
}
