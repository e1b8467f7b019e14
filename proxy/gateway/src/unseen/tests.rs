use super::*;

fn unseen(wire: Wire, body: &str) -> Unseen {
    let whole = unseen_parts(wire, &[body.as_bytes()]);
    // Wherever the body is cut, nothing is overlooked.
    for at in 1..body.len() {
        let (head, tail) = body.as_bytes().split_at(at);
        let cut = unseen_parts(wire, &[head, tail]);
        assert_eq!(cut, whole, "{body} cut at {at}");
    }
    whole
}

const PARTS: Unseen = Unseen::PARTS;
const IMAGES: Unseen = Unseen { parts: false, images: true };
const NOTHING: Unseen = Unseen { parts: false, images: false };

fn chat(part: &str) -> String {
    format!(
        r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"\"type\":\"file\""}},{part}]}}]}}"#
    )
}

#[test]
fn text_and_plain_tools_are_all_there() {
    for (wire, body) in [
        (
            Wire::ChatCompletions,
            r#"{"messages":[{"role":"user","content":"the \"type\" : \"file\""}]}"#,
        ),
        (
            Wire::ChatCompletions,
            r#"{"messages":[],"tools":[{"type":"function","function":
            {"name":"f","parameters":{"type":"object","properties":{"file_id":{"type":["string","null"]},
            "type":{"type":"string","enum":["file"]}}}}}],"response_format":{"type":"json_schema"}}"#,
        ),
        (
            Wire::Responses,
            r#"{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},
            {"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"c","output":"7"}]}"#,
        ),
        (
            Wire::Messages,
            r#"{"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],
            "messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x"},
            {"type":"tool_use","id":"a","name":"f","input":{"type":"file"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"}]}]}],
            "tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"custom","name":"g"}]}"#,
        ),
        (
            Wire::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"document",
            "source":{"type":"text","media_type":"text/plain","data":"x"}}]}]}"#,
        ),
        (
            Wire::GenerateContent,
            r#"{"contents":[{"parts":[{"text":"x"}]}],
            "tools":[{"functionDeclarations":[{"name":"f"}]}]}"#,
        ),
        (
            Wire::Converse,
            r#"{"messages":[{"content":[{"text":"x"}]}],
            "toolConfig":{"tools":[{"toolSpec":{"name":"image"}}]}}"#,
        ),
        (Wire::OllamaGenerate, r#"{"prompt":"x","context":[1,2]}"#),
        (Wire::Embeddings, r#"{"input":["x","y"]}"#),
    ] {
        assert_eq!(unseen(wire, body), NOTHING, "{body}");
    }
}

#[test]
fn images_are_estimated_and_have_no_bound_by_bytes() {
    for part in [
        r#"{"type":"image_url","image_url":{"url":"https://e.org/a.png"}}"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
    ] {
        assert_eq!(unseen(Wire::ChatCompletions, &chat(part)), IMAGES, "{part}");
    }
    let body = r#"{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://e.org/a"}]}]}"#;
    assert_eq!(unseen(Wire::Responses, body), IMAGES);
}

#[test]
fn what_is_kept_elsewhere_or_is_no_text_is_unknown() {
    for part in [
        r#"{"type":"file","file":{"file_id":"f"}}"#,
        r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}"#,
        r#"{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}"#,
        r#"{"type":"video_url","video_url":{"url":"https://e.org/a.mp4"}}"#,
        r#"{"type":"document_url","document_url":"https://e.org/a.pdf"}"#,
    ] {
        assert_eq!(unseen(Wire::ChatCompletions, &chat(part)), PARTS, "{part}");
    }
    for (wire, body) in [
        (Wire::ChatCompletions, r#"{"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]}"#),
        (Wire::ChatCompletions, r#"{"messages":[],"tools":[{"type":"live_search"}]}"#),
        (Wire::Responses, r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#),
        (Wire::Responses, r#"{"input":[{"id":"msg_1"}]}"#),
        (
            Wire::Responses,
            r#"{"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://e.org/a"}]}]}"#,
        ),
        (Wire::Responses, r#"{"input":[{"type":"file_search_call","id":"fs_1","queries":[]}]}"#),
        (
            Wire::Responses,
            r#"{"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"AAAA"}]}"#,
        ),
        (
            Wire::Responses,
            r#"{"input":[{"type":"function_call_output","output":[{"type":"input_file","file_id":"f"}]}]}"#,
        ),
        (Wire::Responses, r#"{"input":"x","tools":[{"type":"web_search"}]}"#),
        (Wire::Responses, r#"{"input":"x","tools":[{"type":"mcp","server_url":"https://e.org"}]}"#),
        (
            Wire::Messages,
            r#"{"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}"#,
        ),
        (
            Wire::Messages,
            r#"{"messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}"#,
        ),
        (
            Wire::Messages,
            r#"{"messages":[{"content":[{"type":"document","source":{"type":"url","url":"https://e.org/a.pdf"}}]}]}"#,
        ),
        (
            Wire::Messages,
            r#"{"messages":[{"content":[{"type":"container_upload","file_id":"f"}]}]}"#,
        ),
        (Wire::GenerateContent, r#"{"contents":[{"parts":[{"fileData":{"fileUri":"gs://a"}}]}]}"#),
        (
            Wire::GenerateContent,
            r#"{"contents":[{"parts":[{"inline_data":{"mime_type":"image/png","data":"AAAA"}}]}]}"#,
        ),
        (Wire::GenerateContent, r#"{"contents":[],"tools":[{"googleSearch":{}}]}"#),
        (Wire::Converse, r#"{"messages":[{"content":[{"image":{"source":{"bytes":"AAAA"}}}]}]}"#),
        (
            Wire::Converse,
            r#"{"messages":[{"content":[{"document":{"source":{"s3Location":{"uri":"s3://a"}}}}]}]}"#,
        ),
        (
            Wire::Converse,
            r#"{"messages":[],"toolConfig":{"tools":[{"systemTool":{"name":"nova_grounding"}}]}}"#,
        ),
        (Wire::OllamaChat, r#"{"messages":[{"role":"user","content":"x","images":["AAAA"]}]}"#),
        (Wire::OllamaGenerate, r#"{"prompt":"x","images":["AAAA"]}"#),
        (Wire::Generate, r#"{"text":"x","session_params":{"id":"s"}}"#),
        (Wire::Generate, r#"{"text":"x","image_data":"https://e.org/a.png"}"#),
        (Wire::VertexGenerate, r#"{"instances":[{"text":"x","image_data":"https://e.org/a"}]}"#),
        (Wire::LlamaCompletion, r#"{"prompt":{"prompt_string":"x","multimodal_data":["AAAA"]}}"#),
        (Wire::Completions, r#"{"prompt_embeds":"AAAA"}"#),
    ] {
        assert_eq!(unseen(wire, body), PARTS, "{body}");
    }
}

#[test]
fn a_member_without_a_value_is_none() {
    for (wire, body) in [
        (Wire::Generate, r#"{"text":"x","image_data":null,"session_params":{}}"#),
        (Wire::OllamaChat, r#"{"messages":[{"content":"x","images":[]}]}"#),
        (
            Wire::ChatCompletions,
            r#"{"messages":[{"role":"assistant","audio":null}],"modalities":["text"]}"#,
        ),
    ] {
        assert_eq!(unseen(wire, body), NOTHING, "{body}");
    }
}

#[test]
fn a_body_that_is_too_long_to_be_read_counts_by_its_words() {
    let long = "x".repeat(READ_BYTES_MAX);
    let plain = format!(r#"{{"messages":[{{"content":"{long}"}}]}}"#);
    assert_eq!(unseen_parts(Wire::ChatCompletions, &[plain.as_bytes()]), NOTHING);
    let file = chat(&format!(r#"{{"type":"file","file":{{"file_data":"{long}"}}}}"#));
    assert!(unseen_parts(Wire::ChatCompletions, &[file.as_bytes()]).parts);
}
