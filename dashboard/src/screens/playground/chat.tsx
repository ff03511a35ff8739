import { useState } from "react";
import type { Model } from "../../api/models.ts";
import { Button } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ChatComposer } from "./chat-composer.tsx";
import { ChatMessages } from "./chat-messages.tsx";
import { ChatSettings, initialSettings, readTools, type Settings } from "./chat-settings.tsx";
import { CopyAs } from "./copy-as.tsx";
import { OutcomeLine } from "./outcome.tsx";
import { useChat } from "./use-chat.ts";

function optionsOf({ system, tools, temperature, maxTokens }: Settings) {
  const { value } = readTools(tools);
  return {
    system,
    ...(value && { tools: value }),
    ...(temperature !== "" && { temperature: Number(temperature) }),
    ...(maxTokens !== "" && { max_tokens: Number(maxTokens) }),
  };
}

export function Chat({ model }: { readonly model: Model }) {
  const chat = useChat();
  const [settings, setSettings] = useState(initialSettings);
  const { system, ...options } = optionsOf(settings);
  const request = { model: model.id, ...options };
  const whole = system ? [{ role: "system" as const, content: system }, ...chat.messages] : chat.messages;
  const example = whole.length > 0 ? whole : [{ role: "user" as const, content: "Hello" }];
  return (
    <div className="grid items-start gap-6 lg:grid-cols-[minmax(0,1fr)_18rem]">
      <Card className="flex min-h-96 flex-col gap-5">
        <ChatMessages chat={chat} onToolResults={(results) => void chat.send(results, { ...request, system })} />
        {chat.error !== undefined && <ErrorNote error={chat.error} />}
        {chat.outcome && <OutcomeLine outcome={chat.outcome} />}
        <ChatComposer
          isRunning={chat.isRunning}
          onSend={(content) => void chat.send([{ role: "user", content }], { ...request, system })}
          onStop={chat.stop}
        />
      </Card>
      <div className="flex flex-col gap-4">
        <ChatSettings settings={settings} onChange={setSettings} />
        <div className="flex flex-wrap gap-2">
          <CopyAs path="/v1/chat/completions" body={() => ({ ...request, messages: example })} />
          <Button small look="quiet" onClick={chat.clear}>
            Start over
          </Button>
        </div>
      </div>
    </div>
  );
}
