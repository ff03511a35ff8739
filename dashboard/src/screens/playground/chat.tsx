import type { ChatMessage } from "../../api/chat.ts";
import type { Model } from "../../api/models.ts";
import { Button } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ChatComposer } from "./chat-composer.tsx";
import { ChatMessages } from "./chat-messages.tsx";
import { ChatSettings, readTools, type Settings } from "./chat-settings.tsx";
import { lastQuestion, useConversation } from "./conversation.ts";
import { CopyAs } from "./copy-as.tsx";
import { OutcomeLine } from "./outcome.tsx";

function optionsOf({ tools, temperature, maxTokens }: Settings) {
  const { value } = readTools(tools);
  return {
    ...(value && { tools: value }),
    ...(temperature !== "" && { temperature: Number(temperature) }),
    ...(maxTokens !== "" && { max_tokens: Number(maxTokens) }),
  };
}

const hello: readonly ChatMessage[] = [{ role: "user", content: "Hello" }];

export function Chat({ model }: { readonly model: Model }) {
  const conversation = useConversation();
  const { turns, error, outcome, settings } = conversation.use();
  const { system } = settings;
  const request = { model: model.id, ...optionsOf(settings) };
  const send = (messages: readonly ChatMessage[]) => void conversation.send(messages, system, request);
  function body() {
    const asked = turns.length > 0 ? lastQuestion(turns) : hello;
    return { ...request, messages: system ? [{ role: "system", content: system }, ...asked] : asked };
  }
  return (
    <div className="grid items-start gap-6 lg:grid-cols-[minmax(0,1fr)_18rem]">
      <Card className="flex min-h-96 flex-col gap-5">
        <ChatMessages conversation={conversation} onToolResults={send} />
        {error !== undefined && <ErrorNote error={error} />}
        {outcome && <OutcomeLine outcome={outcome} />}
        <ChatComposer model={model} conversation={conversation} onSend={() => send([conversation.takeDraft()])} />
      </Card>
      <div className="flex flex-col gap-4">
        <ChatSettings settings={settings} onChange={conversation.set} />
        <div className="flex flex-wrap gap-2">
          <CopyAs path="/v1/chat/completions" body={body} />
          <Button small look="quiet" onClick={conversation.clear}>
            Start over
          </Button>
        </div>
      </div>
    </div>
  );
}
