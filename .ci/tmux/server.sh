# An MCP server with a tool, a resource and a prompt.
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"method":"initialize"'*) reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"notes","version":"1"}}' ;;
    *'"method":"tools/list"'*) reply '{"tools":[{"name":"find","description":"Finds a note","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"resources/list"'*) reply '{"resources":[{"uri":"note://one","name":"one"}]}' ;;
    *'"method":"resources/templates/list"'*) reply '{"resourceTemplates":[]}' ;;
    *'"method":"prompts/list"'*) reply '{"prompts":[{"name":"greet","description":"Greets somebody","arguments":[{"name":"who","required":true},{"name":"how"}]}]}' ;;
    *'"method":"prompts/get"'*)
        who=$(printf '%s' "$line" | sed -n 's/.*"who":"\([^"]*\)".*/\1/p')
        reply "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Greet $who.\"}}]}" ;;
    esac
done
