import { useEffect, useState } from 'react';
import { useText } from '../../app/i18n.tsx';
import { useSession } from '../../app/session.tsx';
import { Command, Facts, Mark, Page, Section } from '../../parts/index.ts';

/** The version of the bundle, from the name of its own entry script. */
function useBundle(): string {
  const [name, setName] = useState('');
  useEffect(() => {
    const source = document.querySelector<HTMLScriptElement>('script[type="module"]')?.src ?? '';
    setName(/main-(\w+)\.js/.exec(source)?.[1] ?? '');
  }, []);
  return name;
}

export default function AboutPage() {
  const t = useText();
  const { me } = useSession();
  const bundle = useBundle();
  const words = t.settings.about;
  return (
    <Page name="about" title={words.title}>
      <div className="pl-column">
        <section className="pl-hero">
          <Mark size={56} />
          <div>
            <strong>{t.common.product}</strong>
            <p>{words.tagline}</p>
          </div>
        </section>
        <Section>
          <Facts
            items={[
              [words.version, me?.version || undefined],
              [words.bundle, bundle ? <code key="bundle">{bundle}</code> : undefined],
              [words.kubernetes, me?.cluster.version || undefined],
              [words.cluster, me?.cluster.isEmbedded ? words.embedded : me?.cluster.name || words.remote],
              [words.licence, words.licenceText],
              [words.fonts, words.fontsText],
            ]}
          />
        </Section>
        <Section title={words.help} hint={words.helpHint}>
          <div className="pl-commands">
            {(
              [
                ['paceline get', words.commandJobs],
                ['paceline logs NAME', words.commandLogs],
                ['paceline train ./train.py', words.commandTrain],
                ['paceline describe NAME', words.commandDescribe],
              ] as const
            ).map(([command, hint]) => (
              <div key={command}>
                <span>{hint}</span>
                <Command>{command}</Command>
              </div>
            ))}
          </div>
        </Section>
      </div>
    </Page>
  );
}
