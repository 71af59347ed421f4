/** The line below form and editor: how many faults, what the jobs ask for; it opens to the list of findings. */
import { CheckCircleFilled, CloseCircleFilled, LoadingOutlined, WarningFilled } from '@ant-design/icons';
import { Button } from 'antd';
import { useId, useState } from 'react';
import { useText } from '../../app/i18n.tsx';
import { bytesText, coresText } from '../../parts/index.ts';
import { totalsOf, type Finding } from '../../forms/checks.ts';
import type { CheckState } from './draft.ts';

interface Props {
  state: CheckState;
  findings: readonly Finding[];
  onShow: (finding: Finding) => void;
  onFix: (finding: Finding) => void;
  onClaim: (finding: Finding) => void;
}

export function Footer({ state, findings, onShow, onFix, onClaim }: Props) {
  const { create } = useText();
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const faults = findings.filter((finding) => finding.severity === 'error').length;
  const warnings = findings.length - faults;
  return (
    <footer className="pc-foot" data-faults={faults} data-warnings={warnings} data-checking={state.isChecking}>
      {isOpen && findings.length > 0 && (
        <ul id={id} className="pc-findings">
          {findings.map((finding, index) => (
            <li key={index}>
              {finding.severity === 'error' ? <CloseCircleFilled aria-hidden className="pf-error" /> : <WarningFilled aria-hidden className="pf-warning" />}
              <button type="button" className="pc-place" onClick={() => onShow(finding)}>
                {create.foot.line(finding.span.line)}
              </button>
              <span lang="en">
                {finding.path !== '' && <code>{finding.path}</code>} <span translate="no">{finding.message}</span>
              </span>
              {finding.fix && (
                <Button size="small" onClick={() => onFix(finding)}>
                  {create.foot.fix(finding.fix.text)}
                </Button>
              )}
              {isMissingClaim(finding) && (
                <Button size="small" onClick={() => onClaim(finding)}>
                  {create.foot.createClaim}
                </Button>
              )}
            </li>
          ))}
          {state.checked.more > 0 && <li>{create.foot.more(state.checked.more)}</li>}
        </ul>
      )}
      <div className="pc-foot-line" role="status">
        {findings.length > 0 ? (
          <button type="button" className="pc-count" aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
            {faults > 0 ? <CloseCircleFilled aria-hidden className="pf-error" /> : <WarningFilled aria-hidden className="pf-warning" />}
            {faults > 0 && <b>{create.foot.faults(faults)}</b>}
            {warnings > 0 && <span>{create.foot.warnings(warnings)}</span>}
            <span className="pl-faint">{isOpen ? create.foot.hide : create.foot.show}</span>
          </button>
        ) : state.error ? (
          <span className="pf-warning">{create.foot.notChecked}</span>
        ) : state.isChecking ? (
          <span className="pl-faint">
            <LoadingOutlined aria-hidden /> {create.foot.checking}
          </span>
        ) : (
          <span>
            <CheckCircleFilled aria-hidden className="pc-clean" /> {create.foot.clean}
          </span>
        )}
        <Totals state={state} />
      </div>
    </footer>
  );
}

export function isMissingClaim(finding: Finding): boolean {
  return finding.reason === 'FieldValueNotFound' && /(claim|claimName|cache|\.name|trainingLogFilesets\[\d+\])$/.test(finding.path) && / claim/.test(finding.message);
}

function Totals({ state }: { state: CheckState }) {
  const { create } = useText();
  const { replicas, requests } = totalsOf(state.checked.objects);
  if (replicas === 0) return null;
  const { cpu, memory, ...devices } = requests;
  const parts = [
    create.foot.replicas(replicas),
    ...(cpu === undefined ? [] : [create.foot.cpu(coresText(cpu))]),
    ...(memory === undefined ? [] : [bytesText(memory)]),
    ...Object.entries(devices).map(([name, amount]) => `${coresText(amount)} ${name}`),
  ];
  return (
    <span className="pc-totals pl-figures">
      {create.foot.asks} {parts.join(', ')}
    </span>
  );
}
