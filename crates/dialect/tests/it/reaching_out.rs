//! Requests that make an upstream reach out, in every dialect, and requests that do not.

use Dialect::{Chat, Messages, Responses};
use herma_dialect::{ApiError, Dialect, Reach, Refusal, outline};

fn found(dialect: Dialect, rest: &str) -> Vec<(Reach, String)> {
    let body = format!(r#"{{"model":"a",{rest}}}"#);
    let outline = outline(dialect, body.as_bytes()).unwrap();
    outline.reaches_out.into_iter().map(|found| (found.reach, found.path)).collect()
}

/// Requests that reach out: dialect, text, kind and path.
const WAYS_OUT: &[(Dialect, &str, Reach, &str)] = &[
    (Responses, r#""tools":[{"type":"web_search"}]"#, Reach::HostedTool, "tools[0]"),
    (
        Responses,
        r#""tools":[{"type":"function","name":"x"},{"type":"web_search_preview_2025_03_11"}]"#,
        Reach::HostedTool,
        "tools[1]",
    ),
    (
        Responses,
        r#""tools":[{"type":"file_search","vector_store_ids":["x"]}]"#,
        Reach::HostedTool,
        "tools[0]",
    ),
    (
        Responses,
        r#""tools":[{"type":"code_interpreter","container":{"type":"auto"}}]"#,
        Reach::HostedTool,
        "tools[0]",
    ),
    (Responses, r#""tools":[{"type":"image_generation"}]"#, Reach::HostedTool, "tools[0]"),
    (Responses, r#""tools":[{"type":"computer_use_preview"}]"#, Reach::HostedTool, "tools[0]"),
    (Responses, r#""tools":[{"type":"mcp","server_url":"https://x"}]"#, Reach::RemoteMcp, "tools[0]"),
    (Responses, r#""tools":[{"type":"tomorrow"}]"#, Reach::HostedTool, "tools[0]"),
    (Responses, r#""tools":[{"name":"x"}]"#, Reach::HostedTool, "tools[0]"),
    (Responses, r#""tools":[{"type":null}]"#, Reach::HostedTool, "tools[0]"),
    (Responses, r#""tools":[{"type":"Function"}]"#, Reach::HostedTool, "tools[0]"),
    (
        Responses,
        r#""tools":[{"type":"shell","environment":{"type":"container_auto"}}]"#,
        Reach::HostedTool,
        "tools[0]",
    ),
    (Responses, r#""tools":[{"type":"tool_search"}]"#, Reach::HostedTool, "tools[0]"),
    (
        Responses,
        r#""tools":[{"type":"namespace","tools":[{"type":"web_search"}]}]"#,
        Reach::HostedTool,
        "tools[0].tools[0]",
    ),
    (
        Responses,
        r#""input":[{"type":"tool_search_output","tools":[{"type":"mcp"}]}]"#,
        Reach::RemoteMcp,
        "input[0].tools[0]",
    ),
    (Responses, r#""store":true"#, Reach::StoredConversation, "store"),
    (Responses, r#""background":true"#, Reach::Background, "background"),
    (Responses, r#""previous_response_id":"resp_1""#, Reach::StoredConversation, "previous_response_id"),
    (Responses, r#""conversation":{"id":"conv_1"}"#, Reach::StoredConversation, "conversation"),
    (Responses, r#""prompt":{"id":"pmpt_1"}"#, Reach::StoredConversation, "prompt"),
    (Responses, r#""input":[{"type":"item_reference","id":"msg_1"}]"#, Reach::StoredConversation, "input[0]"),
    (Responses, r#""input":[{"id":"msg_1"}]"#, Reach::StoredConversation, "input[0]"),
    (
        Responses,
        r#""input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x/y.png"}]}]"#,
        Reach::RemoteUrl,
        "input[0].content[0].image_url",
    ),
    (
        Responses,
        r#""input":[{"role":"user","content":[{"type":"input_file","file_url":"https://x/y.pdf"}]}]"#,
        Reach::RemoteUrl,
        "input[0].content[0].file_url",
    ),
    (
        Responses,
        r#""input":[{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}]"#,
        Reach::StoredFile,
        "input[0].content[0].file_id",
    ),
    (
        Responses,
        r#""input":[{"type":"function_call_output","output":[{"type":"input_image","image_url":"http://x"}]}]"#,
        Reach::RemoteUrl,
        "input[0].output[0].image_url",
    ),
    (
        Responses,
        r#""input":[{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"http://x"}}]"#,
        Reach::RemoteUrl,
        "input[0].output.image_url",
    ),
    (Chat, r#""tools":[{"type":"web_search"}]"#, Reach::HostedTool, "tools[0]"),
    (
        Chat,
        r#""tools":[{"type":"web_search","function":{"type":"function","name":"x"}}]"#,
        Reach::HostedTool,
        "tools[0]",
    ),
    (
        Chat,
        r#""tools":[{"function":{"type":"function","name":"x"},"type":"web_search"}]"#,
        Reach::HostedTool,
        "tools[0]",
    ),
    (Chat, r#""web_search_options":{"user_location":null}"#, Reach::HostedTool, "web_search_options"),
    (Chat, r#""web_search_options":{}"#, Reach::HostedTool, "web_search_options"),
    (Chat, "\"web_search_options\": { \n }", Reach::HostedTool, "web_search_options"),
    (Chat, r#""store":true"#, Reach::StoredConversation, "store"),
    (Chat, r#""plugins":[{"id":"web"}]"#, Reach::HostedTool, "plugins"),
    (Chat, r#""api_base":"https://x""#, Reach::RemoteUrl, "api_base"),
    (
        Chat,
        r#""prediction":{"content":[{"type":"image_url","image_url":{"url":"https://x"}}]}"#,
        Reach::RemoteUrl,
        "prediction.content[0].image_url.url",
    ),
    (
        Chat,
        r#""stream_options":{"callback_url":"https://x"}"#,
        Reach::RemoteUrl,
        "stream_options.callback_url",
    ),
    (Chat, r#""audio":{"voice":{"uri":"https://x"}}"#, Reach::RemoteUrl, "audio.voice.uri"),
    (Responses, r#""reasoning":{"webhook":"https://x"}"#, Reach::RemoteUrl, "reasoning.webhook"),
    (Messages, r#""thinking":{"Image_URI":"https://x"}"#, Reach::RemoteUrl, "thinking.Image_URI"),
    (
        Responses,
        r#""tools":[{"type":"function","name":"x","server_url":"https://x"}]"#,
        Reach::RemoteUrl,
        "tools[0].server_url",
    ),
    (
        Chat,
        r#""tools":[{"type":"function","function":{"name":"x","endpoint":"https://x"}}]"#,
        Reach::RemoteUrl,
        "tools[0].function.endpoint",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"image_url","image_url":{"uri":"https://x"}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].image_url.uri",
    ),
    (Chat, r#""models":["other"]"#, Reach::OtherModels, "models"),
    (Chat, r#""fallbacks":["other"]"#, Reach::OtherModels, "fallbacks"),
    (Chat, r#""previous_response_id":"resp_1""#, Reach::StoredConversation, "previous_response_id"),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].image_url.url",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"HTTP://x"}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].image_url.url",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"\u0068ttp://x"}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].image_url.url",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":" data:,x"}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].image_url.url",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"image_url","image_url":"file:///etc/passwd"}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].image_url",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":{"image_url":{"url":"//x"}}}]"#,
        Reach::RemoteUrl,
        "messages[0].content.image_url.url",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://x"}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].video_url.url",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"image","url":"https://x"}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0]",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]"#,
        Reach::StoredFile,
        "messages[0].content[0].file.file_id",
    ),
    (
        Chat,
        r#""messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"https://x"}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].file.file_data",
    ),
    (
        Messages,
        r#""tools":[{"type":"web_search_20250305","name":"web_search"}]"#,
        Reach::HostedTool,
        "tools[0]",
    ),
    (
        Messages,
        r#""tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]"#,
        Reach::HostedTool,
        "tools[0]",
    ),
    (
        Messages,
        r#""tools":[{"type":"code_execution_20250825","name":"code_execution"}]"#,
        Reach::HostedTool,
        "tools[0]",
    ),
    (
        Messages,
        r#""tools":[{"type":"bash_code_execution_20250825","name":"bash"}]"#,
        Reach::HostedTool,
        "tools[0]",
    ),
    (Messages, r#""tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]"#, Reach::RemoteMcp, "tools[0]"),
    (Messages, r#""tools":[{"type":"function","name":"x"}]"#, Reach::HostedTool, "tools[0]"),
    (Messages, r#""mcp_servers":[{"type":"url","url":"https://x"}]"#, Reach::RemoteMcp, "mcp_servers"),
    (Messages, r#""container":"container_1""#, Reach::HostedTool, "container"),
    (
        Messages,
        r#""messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].source.url",
    ),
    (
        Messages,
        r#""messages":[{"role":"user","content":[{"type":"document","source":{"url":"https://x","type":"url"}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].source.url",
    ),
    (
        Messages,
        r#""messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]"#,
        Reach::StoredFile,
        "messages[0].content[0].source.file_id",
    ),
    (
        Messages,
        r#""messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","url":"http://x"}}]}}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].source.content[0].source.url",
    ),
    (
        Messages,
        r#""messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"url","url":"http://x"}}]}]}]"#,
        Reach::RemoteUrl,
        "messages[0].content[0].content[0].source.url",
    ),
    (
        Messages,
        r#""system":[{"type":"text","text":"x","tomorrow":{"image_url":"http://x"}}]"#,
        Reach::RemoteUrl,
        "system[0].tomorrow.image_url",
    ),
];

#[test]
fn each_way_out_is_named_with_its_place() {
    for (dialect, rest, reach, path) in WAYS_OUT {
        assert_eq!(found(*dialect, rest), [(*reach, (*path).to_owned())], "{rest}");
    }
}

#[test]
fn many_places_of_one_kind_hide_no_other_kind() {
    let tools = vec![r#"{"type":"web_search"}"#; 100].join(",");
    let found = found(Responses, &format!(r#""tools":[{tools}],"background":true"#));
    assert!(found.contains(&(Reach::Background, "background".to_owned())), "{found:?}");
    assert!(found.len() < 20, "{found:?}");
}

#[test]
fn local_content_does_not_reach_out() {
    for (dialect, rest) in [
        (
            Responses,
            r#""store":false,"background":false,"previous_response_id":null,"conversation":null,"prompt":null"#,
        ),
        (Responses, r#""tools":[],"include":["reasoning.encrypted_content"],"tool_choice":"auto""#),
        (
            Responses,
            r#""tools":[{"type":"shell"},{"type":"apply_patch"},{"type":"tool_search","execution":"client"}]"#,
        ),
        (
            Responses,
            r#""input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA"}]}]"#,
        ),
        (
            Responses,
            r#""input":[{"type":"function_call","call_id":"c","name":"fetch","arguments":"{\"url\":\"https://x\"}","id":"fc_1"}]"#,
        ),
        (
            Responses,
            r#""input":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"see https://x","annotations":[{"type":"url_citation","url":"https://x"}]}]}]"#,
        ),
        (
            Chat,
            r#""messages":[{"role":"user","content":"read https://example.org/image_url"}],"models":[],"plugins":null"#,
        ),
        (
            Chat,
            r#""messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"DATA:image/png;base64,AA"}}]}]"#,
        ),
        (
            Chat,
            r#""messages":[{"role":"user","content":[{"type":"file","file":{"filename":"x","file_data":"data:application/pdf;base64,AA"}}]}]"#,
        ),
        (
            Chat,
            r#""tools":[{"type":"function","function":{"name":"x","parameters":{"properties":{"image_url":{"type":"web_search"}}}}}]"#,
        ),
        (Messages, r#""mcp_servers":[],"container":null,"metadata":{"user_id":"x"}"#),
        (
            Messages,
            r#""messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","input":{"source":{"url":"https://x"}}}]}]"#,
        ),
        (
            Messages,
            r#""tools":[{"type":"memory_20250818","name":"memory"},{"type":"bash_20241022","name":"bash"}]"#,
        ),
    ] {
        assert_eq!(found(dialect, rest), [], "{rest}");
    }
}

#[test]
fn a_way_out_is_refused_in_words_that_help() {
    let body = br#"{"model":"a","tools":[{"type":"web_search"}]}"#;
    let found = outline(Responses, body).unwrap().reaches_out.remove(0);
    let refusal = Refusal::ReachesOut(found);
    let error = ApiError::from(&refusal);
    assert_eq!(error.status, 403);
    assert_eq!(
        error.body(Responses),
        r#"{"error":{"message":"`tools[0]` (web_search) is a tool that is not run by the client; remove it, or have it admitted","type":"permission_error","param":"tools[0]","code":null}}"#
    );
}
